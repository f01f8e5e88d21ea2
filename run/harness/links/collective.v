// Lists of collectives on the engines of an instance: one memory holds every core's HBM, one file every core's list, and
// what became of them is written to files; the memory too, in the end. Nothing is moved by hand while they run.
//
// Plusargs (`ARGUMENTS), besides those of run/harness/hbm.v, run/harness/disturbance.v and run/harness/link_view.v:
//   +lists=FILE   instructions, hexadecimal, one on each of +lists_count=N lines: core after core, in front of each (as
//                 its upper 32 bits) the cycles that pass before it is offered
//   +starts=FILE  of each core's list the first line, and of the last one's the line behind it: +starts_count=CORES + 1
//   +limit=N      cycles after which the run is given up
//   +patience=N   cycles in which nothing moves before a run is left that does not end: because of an error or a dead
//                 link, or without one
//   +runs=FILE    "end CYCLES HOW": cycles until the last retirement, and how it ended; "core NUMBER", its error, its
//                 counters; "wire NUMBER", whether its link is dead, disturbed frames, the counters of the end that
//                 sends
//   +events=FILE  "i CORE CYCLE" for an instruction that an engine takes, "r CORE CYCLE" for one that it retires
`timescale 1ns / 1ps

module collective (
    input  wire clk,
    output reg  done
);
    localparam WORD = `INSTRUCTION + 32;
    // Cycles after the last retirement in which something might still be written that should not be.
    localparam [31:0] REST = 128;

    reg [8*1024-1:0] path;
    reg [WORD-1:0]   lists [0:`STEPS-1];
    reg [31:0]       starts [0:`CORES];
    reg [31:0]       limit, patience;
    integer          lists_count, starts_count, runs, events, c, w;
    initial begin
        done = 0;
        `ARGUMENTS
    end

    `AXI_WIRES

    reg [7:0]  reset = 8'd16;
    wire       rst = reset != 0;
    reg [31:0] cycle, ended, still;
    always @(posedge clk) if (rst) reset <= reset - 8'd1;

    wire [`WIRES-1:0]    flip, drop, repeated, cut;
    wire [`WIRES*10-1:0] flip_bit;
    wire [`WIRES*32-1:0] disturbed;
    disturbance disturbance (
        .clk, .rst, .cycle, .flip, .flip_bit, .drop, .repeated, .cut, .disturbed
    );

    // Who has come how far.
    reg  [`CORES-1:0]               offered, counting, at_end;
    reg  [`CORES*`INSTRUCTION-1:0]  instructions;
    wire [`CORES-1:0]               accepts, retired, error;
    wire [`CORES-1:0]               taken = offered & accepts;
    reg  [31:0]                     next [0:`CORES-1], left [0:`CORES-1], retirements [0:`CORES-1];
    wire [`CORES*`ERROR-1:0]        core_errors;
    wire [`CORES*`CORE_COUNTERS-1:0] core_counters;
    wire [`WIRES-1:0]               dead;
    wire [`WIRES*`LINK_COUNTERS-1:0] link_counters;
    wire [`WIRES*16-1:0] credits_used;
    wire moves = |counting || |taken || |retired || |(arvalid & arready) || |(rvalid & rready) || |(wvalid & wready)
               || |(bvalid & bready);
    wire given_up = cycle == limit;
    wire finished = !rst && !done && ((&at_end && still == REST) || still == patience || given_up);
    wire dump = finished;

    always @(posedge clk) begin
        if (rst) begin
            {cycle, ended, still, offered, counting} <= 0;
            /* verilator unroll_disable */
            for (c = 0; c < `CORES; c = c + 1) begin
                next[c] <= starts[c];
                retirements[c] <= 0;
                at_end[c] <= starts[c] == starts[c+1];
            end
        end else if (!done) begin
            cycle <= cycle + 1;
            still <= moves ? 0 : still + 1;
            /* verilator unroll_disable */
            for (c = 0; c < `CORES; c = c + 1) begin
                if (taken[c]) begin
                    offered[c] <= 0;
                    next[c] <= next[c] + 1;
                    $fwrite(events, "i %0d %0d\n", c, cycle);
                end else if (!offered[c] && next[c] != starts[c+1]) begin
                    if (!counting[c]) begin
                        counting[c] <= 1;
                        left[c] <= lists[next[c]][`INSTRUCTION +: 32];
                    end else if (left[c] != 0) left[c] <= left[c] - 1;
                    else begin
                        counting[c] <= 0;
                        offered[c] <= 1;
                        instructions[c*`INSTRUCTION +: `INSTRUCTION] <= lists[next[c]][`INSTRUCTION-1:0];
                    end
                end
            end
            if (|retired) begin
                ended <= cycle;
                /* verilator unroll_disable */
                for (c = 0; c < `CORES; c = c + 1) if (retired[c]) begin
                    $fwrite(events, "r %0d %0d\n", c, cycle);
                    retirements[c] <= retirements[c] + 1;
                    at_end[c] <= starts[c] + retirements[c] + 1 == starts[c+1];
                end
            end
            if (finished) begin
                $fwrite(runs, "end %0d %0d\n", ended, &at_end ? `ENDING_FINISHED : given_up ? `ENDING_LIMIT
                        : |error ? `ENDING_ERROR : |dead ? `ENDING_DEAD : `ENDING_STUCK);
                /* verilator unroll_disable */
                for (c = 0; c < `CORES; c = c + 1)
                    $fwrite(runs, "core %0d %h %h\n", c,
                            core_errors[c*`ERROR +: `ERROR], core_counters[c*`CORE_COUNTERS +: `CORE_COUNTERS]);
                /* verilator unroll_disable */
                for (w = 0; w < `WIRES; w = w + 1)
                    $fwrite(runs, "wire %0d %0d %0d %h\n", w, dead[w], disturbed[32*w +: 32],
                            link_counters[w*`LINK_COUNTERS +: `LINK_COUNTERS]);
                $fclose(runs);
                $fclose(events);
                done <= 1;
            end
        end
    end

    linked_engines engines (
        `PORTS,
        .clk, .rst, .flip, .flip_bit, .drop, .repeated, .cut, .retired, .failed(error), .errors(core_errors),
        .counters(core_counters), .dead, .credits_used, .link_counters
    );

    wire        sampling;
    wire [31:0] samples;
    link_sampler sampler (.clk, .rst, .cycle, .last(finished), .sampling, .samples);
    `LINK_VIEWS
    `ENGINE_VIEWS

    `HBM
    // Whoever is told that an instruction is retired may read what it has written: nothing of it may be on its way then,
    // and behind the last one of a core nothing may come.
    reg  [15:0]             unanswered [0:2*`CORES-1];
    wire [2*`CORES-1:0]     asks = awvalid & awready, answers = bvalid & bready, writes = asks | (wvalid & wready);
    integer k;
    always @(posedge clk) begin
        /* verilator unroll_disable */
        for (k = 0; k < 2 * `CORES; k = k + 1) begin
            unanswered[k] <= rst ? 0 : unanswered[k] + {15'd0, asks[k]} - {15'd0, answers[k]};
            if (!rst && (retired[k/2] && unanswered[k] != 0 || at_end[k/2] && writes[k]))
                $fatal(1, "core %0d retires an instruction before HBM has answered", k / 2);
        end
    end
endmodule
