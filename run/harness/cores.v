// Runs images on a core, or one on every core of an instance: one memory holds every core's HBM, one file says where and
// when each core boots, and what became of them is written to files; the memory too, in the end. Nothing is moved by hand
// meanwhile. More images than cores run in rounds, with a reset before each.
//
// Defined by cores.py: `TOP (name), `SUBJECT (the core, or all of them, with its links if LINKS is defined), and what else
// the parameters are.
//
// Plusargs (`ARGUMENTS), besides those of run/harness/hbm.v, run/harness/disturbance.v and run/harness/link_view.v:
//   +boots=FILE, +boots_count=N   a line for each core in each of +rounds=R rounds, hexadecimal: whether it is started
//                 at all, 32 bits of cycles that pass before it is, 40 bits of the address that it boots from
//   +limit=N      cycles after which a round is given up, and those behind it are not run
//   +patience=N   cycles in which every core rests before a round is left in which one with an error, or one that was not
//                 started, keeps its program from ending
//   +host=N       cycle in which the host interrupts the controllers; 0 for never
//   +profile=N    1 if what every core does in every cycle is written, too
//   +runs=FILE    "core NUMBER", cycles until its program ended, whether it did and with which code, whether it was given
//                 up, its error, and all counters; "end CYCLES GIVEN_UP" of each round; "wire NUMBER", whether its link is
//                 dead, disturbed frames, the counters of the end that sends
//   +events=FILE  "i CORE QUEUE ADDRESS CYCLE" for a record that an engine takes, "r CORE LANE ADDRESS CYCLE" for one
//                 that it has finished, "c CORE BYTE" for what a program prints, "s ROUND" before those of each round;
//                 where a run is profiled "a CORE CYCLE BITS", which counters count from that cycle on
`timescale 1ns / 1ps

module `TOP (
    input  wire clk,
    output reg  done
);
    // Cycles without anything happening before a run is left in which every program has ended.
    localparam [31:0] REST = 256;

    reg [8*1024-1:0] path;
    reg [72:0]       boots [0:`ROUNDS*`CORES-1];
    reg [31:0]       limit, patience, host, profile;
    integer          boots_count, rounds, runs, events, c, w;
    initial begin
        done = 0;
        `ARGUMENTS
    end

    `AXI_WIRES

    reg [7:0]  reset = 8'd15;
    wire       rst = reset != 0;
    reg [31:0] cycle = 0;
    integer    round = 0;

`ifdef LINKS
    wire [`WIRES-1:0]    flip, drop, repeated, cut, dead;
    wire [`WIRES*10-1:0] flip_bit;
    wire [`WIRES*32-1:0] disturbed;
    wire [`WIRES*`LINK_COUNTERS-1:0] link_counters;
    wire [`WIRES*16-1:0] credits_used;
`endif

    // Who runs: a core that is not started is as good as one with an error.
    reg  [`CORES-1:0]      waits, stopped;
    wire [`CORES-1:0]      over, failed, quiet, start;
    reg  [`CORES-1:0]      over_before;
    reg  [31:0]            ended [0:`CORES-1];
    reg  [31:0]            still;
    reg                    closing = 0;
    wire given_up = cycle == limit;
    wire finished = !rst && !closing && !done
        && ((&over && still >= REST) || (&(over | failed | stopped) && still >= patience) || given_up);
    wire last = round + 1 == rounds || given_up;
    wire dump = finished && last;
    wire host_interrupt = host != 0 && cycle == host;

    genvar number;
    generate
        for (number = 0; number < `CORES; number = number + 1) begin : starts
            assign start[number] = !rst && waits[number] && cycle >= boots[round * `CORES + number][71:40];
        end
    endgenerate

    always @(posedge clk) begin
        if (rst) begin
            reset <= reset - 8'd1;
            {cycle, still, over_before} <= 0;
            /* verilator unroll_disable */
            for (c = 0; c < `CORES; c = c + 1) begin
                waits[c] <= boots[round * `CORES + c][72];
                stopped[c] <= !boots[round * `CORES + c][72];
            end
            if (reset == 8'd1) $fwrite(events, "s %0d\n", round);
        end else if (!done) begin
            cycle <= cycle + 1;
            still <= waits == 0 && &quiet ? still + 1 : 0;
            waits <= waits & ~start;
            if (over != over_before) begin
                over_before <= over;
                /* verilator unroll_disable */
                for (c = 0; c < `CORES; c = c + 1) if (over[c] && !over_before[c]) ended[c] <= cycle - 1;
            end
            if (finished) begin
                $fwrite(runs, "end %0d %0d\n", cycle, given_up);
`ifdef LINKS
                /* verilator unroll_disable */
                for (w = 0; w < `WIRES; w = w + 1)
                    $fwrite(runs, "wire %0d %0d %0d %h\n", w, dead[w], disturbed[32*w +: 32],
                            link_counters[w*`LINK_COUNTERS +: `LINK_COUNTERS]);
`endif
                round <= round + 1;
                if (last) closing <= 1;
                else reset <= 8'd15;
            end
            if (closing) begin
                $fclose(runs);
                $fclose(events);
                done <= 1;
            end
        end
    end

    `CORE_WIRES
    `SUBJECT (
        `PORTS,
`ifdef LINKS
        .flip, .flip_bit, .drop, .repeated, .cut, .dead, .credits_used, .link_counters,
`endif
        .clk, .rst
    );
    `CORE_LOGS

`ifdef LINKS
    disturbance disturbance (
        .clk, .rst, .cycle, .flip, .flip_bit, .drop, .repeated, .cut, .disturbed
    );

    wire        sampling;
    wire [31:0] samples;
    link_sampler sampler (.clk, .rst, .cycle, .last(finished), .sampling, .samples);
    `LINK_VIEWS
`endif

    `HBM
endmodule

// What a core does, in the files of all.
module core_log (
    input wire        clk, rst,
    input wire        finished, given_up, over, console__valid,
    input wire [31:0] number, cycle, profile, runs, events, ended, exit_code,
    input wire [7:0]  console__payload,
    input wire [`ERROR-1:0] error,
    input wire [`QUEUES-1:0]         issued,
    input wire [`QUEUES*40-1:0]      issued_addresses,
    input wire [`QUEUES-1:0]         passed,
    input wire [`QUEUES:0]           retired,
    input wire [(`QUEUES+1)*40-1:0]  retired_addresses,
    input wire [`COUNTERS-1:0]       counters
`ifdef WAVES
    ,
    input wire        quiet,
    input wire [31:0] controller_pc,
    input wire        controller_retires
`endif
);
    // What a counter shows in a cycle it has counted before, and it counts cycles, so its lowest bit tells all.
    wire [`ACTIVITIES-1:0] counted = `ACTIVITY;
    reg  [`ACTIVITIES-1:0] counted_before, active_before;
    wire [`ACTIVITIES-1:0] active = {counted[`ACTIVITIES-1:1] ^ counted_before[`ACTIVITIES-1:1], counted[0]};
    always @(posedge clk) if (profile != 0) begin
        counted_before <= rst ? 0 : counted;
        active_before <= rst ? 0 : active;
        if (!rst && active != active_before) $fwrite(events, "a %0d %0d %h\n", number, cycle - 1, active);
    end

    integer i;
    always @(posedge clk) if (!rst) begin
        if (console__valid) $fwrite(events, "c %0d %0d\n", number, console__payload);
        if (|issued) begin
            /* verilator unroll_disable */
            for (i = 0; i < `QUEUES; i = i + 1) if (issued[i])
                $fwrite(events, "%s %0d %0d %h %0d\n", passed[i] ? "p" : "i", number, i, issued_addresses[40*i +: 40],
                        cycle);
        end
        if (|retired) begin
            /* verilator unroll_disable */
            for (i = 0; i <= `QUEUES; i = i + 1) if (retired[i])
                $fwrite(events, "r %0d %0d %h %0d\n", number, i, retired_addresses[40*i +: 40], cycle);
        end
        if (finished)
            $fwrite(runs, "core %0d %0d %0d %h %0d %0d %0d %h %h %h\n", number, over ? ended : cycle, over, exit_code,
                    given_up && !over, error[`ERROR_VALID] ? {24'd0, error[`ERROR_CAUSE]} : 0, error[`ERROR_QUEUE],
                    error[`ERROR_ADDRESS], error[`ERROR_DETAIL], counters);
    end
endmodule
