// Collective engines, each with HBM of its own (run/harness/hbm.v), on a network that does nothing but delay: flits of
// a source keep their order, those of different sources meet in any. The simulator never waits for Python.
//
// Defined by machine.py: `CORES, `FIRST (number of the first core), `INSTRUCTION (bits), `DEPTH (of a core's program),
// `HBM, `ENGINES (instances of the engine, one for each core). `awake` counts the cycles in which each needs its clock;
// `named` is the sum of the numbers of those that each waits for, plus one, over all cycles; `sent` counts flits of all
// kinds.
//
// Plusargs, besides those of run/harness/hbm.v: +program (of each core, from `DEPTH times its place on), +counts:
// hexadecimal files; +events: a line "core cycle sent taken" for an instruction that is retired,
// with all flits that the core has sent and got so far; +delay: of the network, in cycles;
// +stall: its handshakes, and those of instructions, pause in so many of 256 cycles; +noise: seed; +limit: cycles after
// which a run is given up; +dead: the links of core 0's chip that die, a bit each, +death: in this cycle; +late: cores
// that are offered nothing, a bit each, before the cycle +begin.
module machine (
    input  wire                        clk,
    output reg                         done,
    output wire [`ERROR*`CORES-1:0]    errors,
    output wire [`PEER*`CORES-1:0]     peers,
    output wire [`COUNTERS*`CORES-1:0] counters,
    output reg  [32*`CORES-1:0]        awake,
    output reg  [32*`CORES-1:0]        named,
    output reg  [32*`CORES-1:0]        sent
);
    localparam PORTS = 2 * `CORES;
    localparam PENDING = 64;
    localparam PATIENCE = 3000;  // cycles after an error

    reg [`INSTRUCTION-1:0] program_ [0:`CORES*`DEPTH-1];
    reg [31:0]             counts [0:`CORES-1];
    reg [63:0]             cycles = 0;
    reg [8*1024-1:0]       path;
    integer                limit, delay, dead, death, late, begins, events, c, k, source, target;
    initial begin
        done = 0;
        awake = 0;
        named = 0;
        if (!$value$plusargs("limit=%d", limit)) $fatal(1, "+limit is missing");
        if (!$value$plusargs("delay=%d", delay)) delay = 10;
        if (!$value$plusargs("dead=%d", dead)) dead = 0;
        if (!$value$plusargs("death=%d", death)) death = 0;
        if (!$value$plusargs("late=%d", late)) late = 0;
        if (!$value$plusargs("begin=%d", begins)) begins = 0;
        if ($value$plusargs("program=%s", path)) $readmemh(path, program_);
        if ($value$plusargs("counts=%s", path)) $readmemh(path, counts);
        events = 0;
        if ($value$plusargs("events=%s", path)) events = $fopen(path, "w");
        if (events == 0) $fatal(1, "cannot open the file of events");
    end

    `AXI_WIRES
    reg  [3:0]          starting = 4'hf;
    wire                rst = starting != 0;
    integer             after_error = 0;
    reg  [`PEER-1:0]    peer;
    reg  [31:0]         next [0:`CORES-1], retirements [0:`CORES-1], taken [0:`CORES-1];
    reg  [31:0]         o_in [0:PORTS-1], o_out [0:PORTS-1];
    wire [`CORES-1:0]   offered, accepts, retired, busy, failed, at_end;
    // The clock of an engine stands still where it says that it may.
    reg  [`CORES-1:0]   running = ~0;
    wire [`CORES-1:0]   active;
    wire [`CORES-1:0]   gated = {`CORES{clk}} & running;
    always @(negedge clk) running <= active | {`CORES{rst}};
    wire [PORTS-1:0]    i_ready, o_valid, o_ready;
    wire [`FLIT-1:0]    o_flit [0:PORTS-1];
    reg  [PORTS-1:0]    i_valid = 0, occupied, o_waited = 0;
    reg  [`FLIT-1:0]    i_flit [0:PORTS-1], o_before [0:PORTS-1];
    wire                ends = !done && !rst && (&at_end || after_error == PATIENCE || cycles == {32'b0, limit});
    initial for (k = 0; k < PORTS; k = k + 1) begin
        {next[k / 2], retirements[k / 2], taken[k / 2]} = 0;
        {o_in[k], o_out[k]} = 0;
    end

    `ENGINES
    wire dump = ends;
    `HBM
    genvar g;
    generate
        for (g = 0; g < PORTS; g = g + 1) begin : ports
            wire [7:0] pause;
            pauses #(.SALT(g)) pausing (.clk(clk), .pause(pause), .noise());
            assign o_ready[g] = !pause[5] && o_in[g] - o_out[g] < PENDING;
        end
        for (g = 0; g < `CORES; g = g + 1) begin : cores
            assign offered[g] = !ports[2*g].pause[7] && next[g] < counts[g] && !rst && !(late[g] && cycles < begins);
            assign failed[g] = errors[`ERROR*g+`ERROR_VALID];
            assign at_end[g] = retirements[g] == counts[g] && !busy[g] && !failed[g];
        end
    endgenerate

    always @(posedge clk) begin
        cycles <= cycles + 1;
        if (rst) starting <= starting - 1;
        if (|failed) after_error <= after_error + 1;
        for (c = 0; c < `CORES; c = c + 1) begin
            sent[32*c+:32] <= o_in[2*c] + o_in[2*c+1];
            awake[32*c+:32] <= awake[32*c+:32] + {31'd0, active[c] && !rst};
            peer = peers[`PEER*c+:`PEER];
            // Nobody is 0, so that what is not valid adds nothing.
            named[32*c+:32] <= named[32*c+:32] + {25'b0, peer[`PEER_CORE]} + {31'b0, peer[`PEER_VALID]};
            if (offered[c] && accepts[c]) next[c] <= next[c] + 1;
            if (retired[c]) begin
                retirements[c] <= retirements[c] + 1;
                $fwrite(events, "%0d %0d %0d %0d\n", c, cycles, o_in[2*c] + o_in[2*c+1], taken[c]);
                if (!idle[2*c] || !idle[2*c+1]) $fatal(1, "core %0d retires an instruction before HBM has answered", c);
                if (o_waited[2*c] || o_waited[2*c+1]) $fatal(1, "core %0d retires an instruction that sends yet", c);
            end
            if (failed[c] && accepts[c]) $fatal(1, "core %0d takes an instruction after an error", c);
            taken[c] <= taken[c] + {31'd0, i_valid[2*c]} + {31'd0, i_valid[2*c+1]};
            if (failed[c] && (retired[c] || busy[c])) $fatal(1, "core %0d goes on after an error", c);
        end
        if (ends) begin
            $fclose(events);
            done <= 1;
        end
    end

    // The network: a queue for each source, and a choice for each destination.
    reg [`FLIT-1:0] flit, o_queue [0:PORTS*PENDING-1];
    reg [63:0]      o_due [0:PORTS*PENDING-1];
    always @(posedge clk) if (!rst) begin
        if (i_valid & ~i_ready) $fatal(1, "an engine does not take what comes, at once");
        occupied = 0;
        for (k = 0; k < PORTS; k = k + 1) begin
            source = (k + cycles) % PORTS;
            if (o_in[source] != o_out[source] && cycles >= o_due[source*PENDING+o_out[source]%PENDING]) begin
                flit = o_queue[source*PENDING+o_out[source]%PENDING];
                target = {flit[`FLIT_HEADER_DESTINATION], flit[`FLIT_HEADER_CHANNEL]} - 2 * `FIRST;
                if (target < 0 || target >= PORTS || flit[`FLIT_HEADER_SOURCE] != `FIRST + source / 2)
                    $fatal(1, "a flit has a wrong header");
                if (!occupied[target]) begin
                    occupied[target] = 1;
                    i_flit[target] <= flit;
                    o_out[source] <= o_out[source] + 1;
                end
            end
        end
        i_valid <= occupied;
        for (k = 0; k < PORTS; k = k + 1) begin
            if (o_valid[k] && o_ready[k]) begin
                o_queue[k*PENDING+o_in[k]%PENDING] <= o_flit[k];
                o_due[k*PENDING+o_in[k]%PENDING] <= cycles + delay;
                o_in[k] <= o_in[k] + 1;
            end
            if (o_waited[k] && (!o_valid[k] || o_before[k] != o_flit[k])) $fatal(1, "a flit changes before it is taken");
            o_waited[k] <= o_valid[k] && !o_ready[k];
            o_before[k] <= o_flit[k];
        end
    end
endmodule
