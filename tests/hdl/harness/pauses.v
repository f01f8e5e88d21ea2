// A pause for each of eight handshakes, a byte of a 64-bit xorshift each: +stall of 256 cycles. +noise: seed.
module pauses #(parameter SALT = 0) (
    input  wire        clk,
    output wire [7:0]  pause,
    output reg  [63:0] noise
);
    integer    stall, seed;
    reg [63:0] shifted0, shifted1;
    initial begin
        if (!$value$plusargs("stall=%d", stall)) stall = 0;
        if (!$value$plusargs("noise=%d", seed)) seed = 1;
        noise = {32'h9e3779b1 * (seed + SALT), 32'h85ebca77 + seed + 32'h01000193 * SALT};
    end
    always @* begin
        shifted0 = noise ^ (noise << 13);
        shifted1 = shifted0 ^ (shifted0 >> 7);
    end
    always @(posedge clk) noise <= shifted1 ^ (shifted1 << 17);
    genvar g;
    generate
        for (g = 0; g < 8; g = g + 1) begin : handshakes
            assign pause[g] = {24'b0, noise[8*g+:8]} < stall;
        end
    endgenerate
endmodule
