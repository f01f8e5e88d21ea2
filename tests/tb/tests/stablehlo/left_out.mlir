func.func @nothing() {
  func.return
}
// -----
func.func @large() {
  %0 = stablehlo.constant dense<9223372036854775807> : tensor<i64>
  %1 = stablehlo.not %0 : tensor<i64>
  check.expect_eq_const %1, dense<-9223372036854775808> : tensor<i64>
  func.return
}
// -----
func.func @bits() {
  %0 = stablehlo.constant dense<1> : tensor<i64>
  %1 = stablehlo.count_leading_zeros %0 : tensor<i64>
  check.expect_eq_const %1, dense<63> : tensor<i64>
  func.return
}
// -----
func.func @complex() {
  %0 = stablehlo.constant dense<(1.0, 2.0)> : tensor<complex<f32>>
  check.expect_eq_const %0, dense<(1.0, 2.0)> : tensor<complex<f32>>
  func.return
}
// -----
func.func @refused() {
  %0 = stablehlo.constant dense<1.0> : tensor<1xf32>
  %1 = stablehlo.custom_call @other(%0) : (tensor<1xf32>) -> tensor<1xf32>
  check.expect_eq_const %1, dense<1.0> : tensor<1xf32>
  func.return
}
