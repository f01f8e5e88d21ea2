// RUN: stablehlo-translate --interpret -split-input-file %s

func.func @add_of_64_bits() {
  %0 = stablehlo.constant dense<[1, -2]> : tensor<2xi64> // a comment
  %1 = func.call @twice(%0) : (tensor<2xi64>) -> tensor<2xi64>
  check.expect_eq_const %1, dense<[2,
                                   -4]> : tensor<2xi64>
  func.return
}

func.func private @twice(%0: tensor<2xi64>) -> tensor<2xi64> {
  %1 = stablehlo.add %0, %0 : tensor<2xi64>
  func.return %1 : tensor<2xi64>
}

// -----

func.func @two_results() {
  %0 = stablehlo.constant dense<[4.0, 9.0]> : tensor<2xf32>
  %1 = stablehlo.sqrt %0 : tensor<2xf32>
  %2 = stablehlo.compare LT, %0, %1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  check.expect_almost_eq_const %1, dense<[2.1, 3.0]> : tensor<2xf32> {tolerance = 0.1 : f64}
  check.expect_eq_const %2, dense<false> : tensor<2xi1>
  func.return
}
