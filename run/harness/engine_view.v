// What a collective engine does, for a waveform: its instruction, and what either channel's two ends are at, which shows
// on the lowest bits of the counters: they turn over with what is counted, a cycle later.
`timescale 1ns / 1ps

module engine_view (
    input wire                      clk,
    input wire                      active,
    input wire [31:0]               number,
    input wire [`INSTRUCTION-1:0]   next,
    input wire [`CORE_COUNTERS-1:0] counters
);
    wire [`INSTRUCTION-1:0] instruction = active ? next : 0;
    `INSTRUCTION_FIELDS
    `CORE_COUNTER_FIELDS
    wire [3:0] does = active ? {1'b0, kind} : 4'd8;

    function [2:0] sending(input sent, input ready, input credit, input link);
        sending = sent ? 3'd1 : ready ? 3'd2 : credit ? 3'd3 : link ? 3'd4 : 3'd0;
    endfunction
    function [2:0] receiving(input received, input net, input load, input store);
        receiving = store ? 3'd4 : net ? 3'd2 : load ? 3'd3 : received ? 3'd1 : 3'd0;
    endfunction
    reg [7:0] earlier0, earlier1;
    wire [7:0] counted0 = {
        store0[0], load0[0], net0[0], received0[0], link0[0], credit0[0], ready0[0], sent0[0]
    };
    wire [7:0] counted1 = {
        store1[0], load1[0], net1[0], received1[0], link1[0], credit1[0], ready1[0], sent1[0]
    };
    always @(posedge clk) begin
        earlier0 <= counted0;
        earlier1 <= counted1;
    end
    wire [7:0] turned0 = counted0 ^ earlier0;
    wire [7:0] turned1 = counted1 ^ earlier1;
    wire [2:0] sending0 = sending(turned0[0], turned0[1], turned0[2], turned0[3]);
    wire [2:0] sending1 = sending(turned1[0], turned1[1], turned1[2], turned1[3]);
    wire [2:0] receiving0 = receiving(turned0[4], turned0[5], turned0[6], turned0[7]);
    wire [2:0] receiving1 = receiving(turned1[4], turned1[5], turned1[6], turned1[7]);
endmodule
