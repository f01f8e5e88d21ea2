// What disturbs the wires of an instance: at random, or for good.
//
// Plusargs:
//   +errors=R     in R of 2**32 cycles a wire disturbs its frame: turns a bit, loses it, or delivers another one again
//   +seed=S       of those
//   +cut=W, +cut_cycle=N   wire W is dead from cycle N on; without it none is
`timescale 1ns / 1ps

module disturbance (
    input  wire                 clk, rst,
    input  wire [31:0]          cycle,
    output reg  [`WIRES-1:0]    flip, drop, repeated, cut,
    output reg  [`WIRES*10-1:0] flip_bit,
    output reg  [`WIRES*32-1:0] disturbed  // frames, by wire
);
    reg [63:0] noise [0:`WIRES-1];
    reg [31:0] errors, seed, cut_cycle;
    reg [19:0] place;
    integer    cut_wire, n;
    initial begin
        if (!$value$plusargs("errors=%d", errors)) errors = 0;
        if (!$value$plusargs("seed=%d", seed)) seed = 1;
        if (!$value$plusargs("cut=%d", cut_wire)) cut_wire = -1;
        if (!$value$plusargs("cut_cycle=%d", cut_cycle)) cut_cycle = 0;
    end

    always @(posedge clk)
        if (rst) begin
            {flip, drop, repeated, cut, flip_bit, disturbed} <= 0;
            /* verilator unroll_disable */
            for (n = 0; n < `WIRES; n = n + 1) noise[n] = {seed * 32'h9e3779b1 + 32'd1, n};
        end else begin
            if (cut_wire >= 0 && cycle >= cut_cycle) cut[cut_wire] <= 1;
            // Unless it is told not to, Verilator writes this loop out, for 64 chips 128 times.
            if (errors != 0) begin
                {flip, drop, repeated} <= 0;
                /* verilator unroll_disable */
                for (n = 0; n < `WIRES; n = n + 1) begin
                    noise[n] = noise[n] ^ (noise[n] << 13);
                    noise[n] = noise[n] ^ (noise[n] >> 7);
                    noise[n] = noise[n] ^ (noise[n] << 17);
                    if (noise[n][31:0] < errors) begin
                        disturbed[32*n +: 32] <= disturbed[32*n +: 32] + 1;
                        place = noise[n][41:32] * `FRAME;
                        flip_bit[10*n +: 10] <= place[19:10];
                        case (noise[n][47:42] % 3)
                            0: flip[n] <= 1;
                            1: drop[n] <= 1;
                            default: repeated[n] <= 1;
                        endcase
                    end
                end
            end
        end
endmodule
