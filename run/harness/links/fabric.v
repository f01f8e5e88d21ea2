// Traffic on the fabric of an instance: a source and a sink at each of its ports, and what disturbs its wires. Every flit
// says where it comes from, its number among those of its source, destination and channel, and when it was made; the rest
// of its data follows from these, so that a sink knows at once what is wrong with a flit.
//
// Plusargs (`ARGUMENTS), besides those of run/harness/link_view.v:
//   +flits=N      that each source makes
//   +pattern=P    destinations: 0 any other core, 1 the same but core 0 for one in eight, 2 a partner, 3 all others in turn
//   +partners=FILE, +partners_count=N   of each port its partner, hexadecimal, one a line
//   +load=L       a source that has nothing on offer makes a flit in L of 65536 cycles
//   +stall=S      a sink takes nothing in S of 65536 cycles
//   +errors=R     in R of 2**32 cycles a wire disturbs its frame: turns a bit, loses it, or delivers the one before again
//   +cut=W, +cut_cycle=N   wire W is dead from cycle N on, and the run ends by its patience; without it none is
//   +seed=S       of all that is random
//   +patience=N   cycles without a flit that moves, after which nothing will move any more
//   +limit=N      cycles after which the run is given up
//   +result=FILE  what became of it:
//       "x PORT SOURCE CHANNEL NUMBER EXPECTED KIND CYCLE"  a flit that is wrong, of each port the first few; KIND is 1 for
//                 wrong data, 2 for the wrong port, 4 for one out of order, or a sum of these
//       "s PORT CORE FLITS", "r PORT CORE FLITS"  flits made for a core, and taken from one
//       "p PORT LATENCIES LONGEST WRONG"  of the flits taken at a port: sum of latencies, longest, wrong ones
//       "w WIRE DISTURBED DEAD COUNTERS"  frames disturbed; cycle in which the end that sends on it gave its link up, or
//                 -1; counters of that end
//       "t CYCLE END"  cycle of the last flit, and how the run ended
`timescale 1ns / 1ps

module endpoint (
    input  wire              clk, rst, dump,
    input  wire [7:0]        port, cores,
    input  wire [1:0]        pattern,
    input  wire [6:0]        partner,
    input  wire [16:0]       load, stall,
    input  wire [31:0]       seed, flits, cycle, result,
    output reg  [`FLIT-1:0]  tx,
    output reg               tx_valid,
    input  wire              tx_ready,
    input  wire [`FLIT-1:0]  rx,
    input  wire              rx_valid,
    output reg               rx_ready,
    output reg  [31:0]       made, taken
);
    localparam [31:0] SHOWN = 4;
    localparam DATA = `FLIT - 64 * `WORDS;
    wire [6:0] core = port[7:1];

    // The data of a flit: number, time and check; in further words more of the check.
    function [`FLIT-1:0] flit(input [DATA-1:0] header, input [23:0] number, input [19:0] stamp);
        reg [63:0] word;
        integer    k;
        begin
            flit[DATA-1:0] = header;
            for (k = 0; k < `WORDS; k = k + 1) begin
                word = {k[2:0], header, stamp, number} * 64'h9e3779b97f4a7c15;
                word = word ^ word >> 29;
                flit[DATA+64*k +: 64] = k == 0 ? {word[19:0], stamp, number} : word;
            end
        end
    endfunction

    function [DATA-1:0] header(input [1:0] kind, input channel, input [6:0] source, input [6:0] destination);
        begin
            header[`FLIT_HEADER_KIND] = kind;
            header[`FLIT_HEADER_CHANNEL] = channel;
            header[`FLIT_HEADER_SOURCE] = source;
            header[`FLIT_HEADER_DESTINATION] = destination;
        end
    endfunction

    reg [63:0] noise;
    wire [63:0] noise_1 = noise ^ noise << 13;
    wire [63:0] noise_2 = noise_1 ^ noise_1 >> 7;

    // The source.
    reg  [23:0] sent [0:127];
    reg  [6:0]  turn;
    wire [23:0] spread = noise[47:32] * {16'd0, cores - 8'd1};
    wire [6:0]  another = spread[22:16] + {6'd0, spread[22:16] >= core};
    wire [7:0]  around = {1'b0, core} + {1'b0, turn};
    wire [7:0]  wrapped = around >= cores ? around - cores : around;
    wire [6:0]  destination = pattern == 2 ? partner : pattern == 3 ? wrapped[6:0]
                            : pattern == 1 && noise[50:48] == 0 ? 7'd0 : another;
    integer n;
    always @(posedge clk)
        if (rst) begin
            noise <= {seed, 24'h5eed00, port} * 64'hbf58476d1ce4e5b9 + 64'd1;
            {tx_valid, made} <= 0;
            turn <= 1;
            for (n = 0; n < 128; n = n + 1) sent[n] <= 0;
        end else begin
            noise <= noise_2 ^ noise_2 << 17;
            if (!tx_valid || tx_ready) begin
                tx_valid <= 0;
                if (made != flits && {1'b0, noise[15:0]} < load) begin
                    tx_valid <= 1;
                    tx <= flit(header(noise[52:51], port[0], core, destination), sent[destination], cycle[19:0]);
                    sent[destination] <= sent[destination] + 24'd1;
                    made <= made + 1;
                    turn <= {1'b0, turn} == cores - 8'd1 ? 7'd1 : turn + 7'd1;
                end
            end
        end

    // The sink.
    reg  [23:0] got [0:127];
    reg  [63:0] latencies;
    reg  [19:0] longest;
    reg  [31:0] wrong;
    wire [6:0]  source = rx[`FLIT_HEADER_SOURCE];
    wire [23:0] number = rx[DATA +: 24];
    wire [19:0] stamp = rx[DATA+24 +: 20];
    wire [19:0] latency = cycle[19:0] - stamp;
    wire [2:0]  kind = {
        number != got[source],
        rx[`FLIT_HEADER_DESTINATION] != core || rx[`FLIT_HEADER_CHANNEL] != port[0],
        rx !== flit(rx[`FLIT_HEADER], number, stamp)
    };
    integer m;
    always @(posedge clk)
        if (rst) begin
            {rx_ready, taken, latencies, longest, wrong} <= 0;
            for (m = 0; m < 128; m = m + 1) got[m] <= 0;
        end else begin
            rx_ready <= {1'b0, noise[31:16]} >= stall;
            if (rx_valid && rx_ready) begin
                taken <= taken + 1;
                latencies <= latencies + {44'd0, latency};
                if (latency > longest) longest <= latency;
                got[source] <= got[source] + 24'd1;
                if (kind !== 0) begin
                    wrong <= wrong + 1;
                    if (wrong < SHOWN)
                        $fwrite(result, "x %0d %0d %0d %0d %0d %0d %0d\n", port, source, rx[`FLIT_HEADER_CHANNEL],
                                number, got[source], kind, cycle);
                end
            end
        end

    integer k;
    always @(posedge clk) if (dump) begin
        $fwrite(result, "p %0d %0d %0d %0d\n", port, latencies, longest, wrong);
        for (k = 0; k < 128; k = k + 1) begin
            if (sent[k] != 0) $fwrite(result, "s %0d %0d %0d\n", port, k, sent[k]);
            if (got[k] != 0) $fwrite(result, "r %0d %0d %0d\n", port, k, got[k]);
        end
    end
endmodule

module traffic (
    input  wire clk,
    output reg  done
);
    localparam PORTS = 2 * `CORES;
    // Cycles after the last flit in which there might be another that should not be.
    localparam [31:0] REST = 1024;

    reg [8*1024-1:0] path;
    reg [7:0]        partners [0:PORTS-1];
    reg [31:0]       flits, errors, seed, cut_cycle, patience, limit;
    reg [16:0]       load, stall;
    reg [1:0]        pattern;
    integer          partners_count, cut_wire, result;
    initial begin
        done = 0;
        `ARGUMENTS
        if (!$value$plusargs("cut=%d", cut_wire)) cut_wire = -1;
        if (!$value$plusargs("cut_cycle=%d", cut_cycle)) cut_cycle = 0;
    end

    reg [7:0]  reset = 8'd16;
    wire       rst = reset != 0;
    reg [31:0] cycle, still, last_flit, made_sum, taken_sum;
    reg        all_there, dumping;
    always @(posedge clk) if (rst) reset <= reset - 8'd1;

    wire [PORTS-1:0]    moves, complete;
    wire [PORTS*32-1:0] made, taken;
    genvar p;
    generate
        for (p = 0; p < PORTS; p = p + 1) begin : port
            wire [`FLIT-1:0] tx, rx;
            wire             tx_valid, tx_ready, rx_valid, rx_ready;
            endpoint unit (
                .clk, .rst, .port(p[7:0]), .cores(8'd`CORES), .pattern, .partner(partners[p][6:0]), .load, .stall, .seed,
                .flits, .cycle, .dump(dumping), .result, .tx, .tx_valid, .tx_ready, .rx, .rx_valid, .rx_ready,
                .made(made[32*p +: 32]), .taken(taken[32*p +: 32])
            );
            assign moves[p] = (tx_valid && tx_ready) || (rx_valid && rx_ready);
            assign complete[p] = made[32*p +: 32] == flits;
        end
    endgenerate

    wire [`WIRES-1:0] dead;
    generate
        for (p = 0; p < `WIRES; p = p + 1) begin : link
            wire [`LINK_COUNTERS-1:0] counters;
            reg                  flip, drop, again, cut;
            reg  [9:0]           flip_bit;
            reg  [63:0]          noise;
            reg  [31:0]          disturbed, dead_since;
            wire [63:0]          noise_1 = noise ^ noise << 13;
            wire [63:0]          noise_2 = noise_1 ^ noise_1 >> 7;
            wire [19:0]          place = noise[41:32] * `FRAME;
            always @(posedge clk)
                if (rst) begin
                    noise <= {seed, 24'hf1a205, p[7:0]} * 64'hbf58476d1ce4e5b9 + 64'd1;
                    {flip, drop, again, cut, flip_bit, disturbed} <= 0;
                    dead_since <= 32'hffffffff;
                end else begin
                    cut <= p == cut_wire && cycle >= cut_cycle;
                    if (dead[p] && dead_since == 32'hffffffff) dead_since <= cycle;
                    if (errors != 0) begin
                        noise <= noise_2 ^ noise_2 << 17;
                        flip <= noise[31:0] < errors && noise[47:42] < 21;
                        drop <= noise[31:0] < errors && noise[47:42] >= 21 && noise[47:42] < 42;
                        again <= noise[31:0] < errors && noise[47:42] >= 42;
                        flip_bit <= place[19:10];
                        if (noise[31:0] < errors) disturbed <= disturbed + 1;
                    end
                end
            always @(posedge clk)
                if (dumping)
                    $fwrite(result, "w %0d %0d %0d %h\n", p, disturbed, $signed(dead_since), counters);
        end
    endgenerate

    fabric fabric (`PORTS, .dead, .clk, .rst);

    wire        sampling;
    wire [31:0] samples;
    link_sampler sampler (.clk, .rst, .cycle, .last(dumping), .sampling, .samples);
    `LINK_VIEWS

    integer n;
    always @(posedge clk)
        if (rst) {cycle, still, last_flit, all_there, dumping} <= 0;
        else if (!done) begin
            cycle <= cycle + 1;
            still <= moves != 0 ? 0 : still + 1;
            if (moves != 0) last_flit <= cycle;
            if (&complete && cycle[5:0] == 0) begin
                made_sum = 0;
                taken_sum = 0;
                for (n = 0; n < PORTS; n = n + 1) begin
                    made_sum = made_sum + made[32*n +: 32];
                    taken_sum = taken_sum + taken[32*n +: 32];
                end
                all_there <= taken_sum >= made_sum;
            end
            dumping <= !dumping && ((all_there && still >= REST && cut_wire < 0) || still >= patience || cycle == limit);
            if (dumping) begin
                $fwrite(result, "t %0d %0d\n", last_flit,
                        all_there ? `ENDING_FINISHED : cycle >= limit ? `ENDING_LIMIT : `ENDING_STUCK);
                done <= 1;
            end
        end

    always @(posedge clk) if (done) $fflush(result);
endmodule
