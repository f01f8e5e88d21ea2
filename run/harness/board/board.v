// The board with its SDRAM, and the host's end of the UART: bytes that Python puts there in one piece go out on the wire,
// and what comes back is collected until the line has been quiet, or until there are as many as were asked for.
//
// Defined by board.py: `CHIP (parameters of the SDRAM), `DIVISOR, `ADDRESS (bits of a row's number).
//
// A turn: `bytes` and `count` are set, `wanted` and `patience` say when it is over, then `turn` changes. `done_turn` follows
// it when `wanted` bytes have come, or when none has come for `patience` cycles since the last one went out or came.
`timescale 1ns / 1ps
module board_bench (
    input  wire         clk,
    input  wire [8191:0] bytes,
    input  wire [31:0]  count, wanted, patience,
    input  wire         turn,
    output reg          done_turn,
    output reg  [8191:0] answer,
    output reg  [31:0]  answers, cycle,
    output wire [3:0]   leds
);
    reg [7:0] reset = 15;
    wire rst = reset != 0;
    reg rx;
    wire tx, enable, drive;
    wire [2:0] command;
    wire [1:0] mask, bank;
    wire [`ADDRESS-1:0] address;
    wire [15:0] o, i;

    board board (
        .clk, .rst, .rx, .tx, .leds, .pins__enable(enable), .pins__command(command), .pins__bank(bank),
        .pins__address(address), .pins__mask(mask), .pins__o(o), .pins__drive(drive), .pins__i(i)
    );
    sdram #(`CHIP) chip (.clk, .enable, .drive, .command, .bank, .address, .mask, .o, .i);

    // The byte that is on its way out, with its start and its stop bit; and the one that comes in.
    reg  [9:0]  going, coming;
    reg  [31:0] sent, out_left, in_left, still;
    integer     out_cycle, in_cycle;
    reg         working;
    wire [7:0]  next_byte = bytes[8*sent[9:0] +: 8];
    initial begin
        {done_turn, answer, answers, cycle, going, coming, sent, out_left, in_left, still, working} = 0;
        {out_cycle, in_cycle} = 0;
        rx = 1;
    end
    always @(posedge clk) begin
        cycle <= cycle + 1;
        if (rst) reset <= reset - 1;
        else if (!working && turn != done_turn) begin
            working <= 1;
            {sent, answers, still} <= 0;
        end else if (working) begin
            still <= still + 1;
            if (out_left != 0) begin
                still <= 0;
                out_cycle <= out_cycle - 1;
                if (out_cycle == 1) begin
                    out_cycle <= `DIVISOR;
                    out_left <= out_left - 1;
                    {going, rx} <= {1'b1, going};
                end
            end
            if ((out_left == 0 || (out_left == 1 && out_cycle == 1)) && sent != count) begin
                {going, rx} <= {2'b11, next_byte, 1'b0};
                out_left <= 10;
                out_cycle <= `DIVISOR;
                sent <= sent + 1;
                still <= 0;
            end
            if (in_left == 0 && !tx) begin
                in_left <= 10;
                in_cycle <= `DIVISOR / 2;
            end else if (in_left != 0) begin
                still <= 0;
                in_cycle <= in_cycle - 1;
                if (in_cycle == 1) begin
                    in_cycle <= `DIVISOR;
                    in_left <= in_left - 1;
                    coming <= {tx, coming[9:1]};
                    if (in_left == 1) begin
                        if (!tx) $fatal(1, "the board has sent a byte without a stop bit");
                        answer[8*answers[9:0] +: 8] <= coming[9:2];
                        answers <= answers + 1;
                    end
                end
            end
            if (sent == count && out_left == 0 && in_left == 0 && (answers == wanted || still >= patience)) begin
                working <= 0;
                done_turn <= turn;
            end
        end
    end
endmodule
