// What the links do: samples of their counters over a run, and a view of each wire under its link's name in a waveform.
//
// Plusargs:
//   +window=N     cycles from a sample to the next at first; without it, none are taken. It doubles with every 200th
//                 sample, so that a run of any length has fewer than 200 at the multiples of its last value
//   +samples=FILE "CYCLE WIRE USED0 USED1 COUNTERS" of each wire in each sample and in the end: the credits
//                 that are used, of each virtual channel, as far as the sending end knows; its counters
`timescale 1ns / 1ps

module link_sampler (
    input  wire        clk, rst, last,
    input  wire [31:0] cycle,
    output wire        sampling,
    output reg  [31:0] samples
);
    reg [8*1024-1:0] path;
    reg [31:0]       window, due, taken;
    initial begin
        {samples, taken} = 0;
        if (!$value$plusargs("window=%d", window)) window = 0;
        due = window;
        if (window != 0) begin
            if (!$value$plusargs("samples=%s", path)) $fatal(1, "+samples is missing");
            samples = $fopen(path, "w");
            if (samples == 0) $fatal(1, "a file cannot be written");
        end
    end
    assign sampling = samples != 0 && !rst && (cycle == due || last);
    always @(posedge clk)
        if (sampling) begin
            if (taken == 199) begin
                window <= window << 1;
                due <= due + (window << 1);
                taken <= 100;
            end else begin
                due <= due + window;
                taken <= taken + 1;
            end
        end
endmodule

module link_view (
    input wire                      clk, sampling,
    input wire [31:0]               wire_number, cycle, samples,
    input wire [7:0]                credits_used0, credits_used1,
`ifdef WAVES
    input wire [`FRAME-1:0]         frame,
    input wire                      disturbed, dead,
`endif
    input wire [`LINK_COUNTERS-1:0] counters
);
    always @(posedge clk)
        if (sampling) $fwrite(samples, "%0d %0d %0d %0d %h\n", cycle, wire_number, credits_used0, credits_used1, counters);

`ifdef WAVES
    `FRAME_FIELDS
    `LINK_COUNTER_FIELDS
    wire [2:0] carries = valid ? {1'b0, kind} : 3'd4;
    wire [7:0] credits0 = 8'd`WINDOW - credits_used0;
    wire [7:0] credits1 = 8'd`WINDOW - credits_used1;
    // A counter's lowest bit turns over with what it counts, a cycle later.
    reg  stalled_before, replays_before;
    always @(posedge clk) begin
        stalled_before <= stalled[0];
        replays_before <= replays[0];
    end
    wire stalls = stalled[0] ^ stalled_before;
    wire goes_back = replays[0] ^ replays_before;
`endif
endmodule
