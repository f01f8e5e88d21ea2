// For riscv-formal's test bench: where the access is that is checked.
//
// Defined by tb/proofs/riscv.py: `LOCAL_BASE, from where on data may have any alignment.

wire is_store = rvfi_insn[5];
wire [31:0] immediate = {{20{rvfi_insn[31]}}, rvfi_insn[31:25], is_store ? rvfi_insn[11:7] : rvfi_insn[24:20]};
wire [31:0] place = rvfi_rs1_rdata + immediate;
always @* if (cycle == `RISCV_FORMAL_CHECK_CYCLE)
`ifdef RISCV_FORMAL_ALIGNED_MEM
    assume (place < `LOCAL_BASE);
`else
    assume (place >= `LOCAL_BASE);
`endif
