// Collective engines, each with a memory of its own behind ../harness/axi_responder.v, on a network that does nothing but
// delay: flits of a source keep their order, those of different sources meet in any. The simulator never waits for Python.
//
// Defined by machine.py: `CORES, `LINK (bytes of a flit), `SIZE (of a beat of HBM), `INSTRUCTION (bits), `LINES (of a
// core's memory), `DEPTH (of a core's program).
//
// Plusargs: +program (`DEPTH words for each core), +counts (of each core), +hbm: hexadecimal files; +hbm_out: the
// memories at the end; +events: a line "a|r core cycle" for an instruction that is taken or retired, "e core cycle cause
// number detail" for an error; +latency: of HBM, +delay: of the network, in cycles; +stall: every handshake pauses in so
// many of 256 cycles; +noise: seed; +limit: cycles after which a run is given up; +patience: after an error; +dead: the
// links of core 0's chip that die, a bit each, +death: in this cycle.
module machine (
    input  wire                     clk,
    output reg                      done,
    output reg                      timeout,
    output reg  [7:0]               stray,
    output wire [`PEER*`CORES-1:0]     peers,
    output wire [`COUNTERS*`CORES-1:0] counters
);
    localparam PORTS = 2 * `CORES;
    localparam BITS = 8 * `SIZE;
    localparam PLACE = $clog2(`SIZE);
    localparam PENDING = 64;

    reg [`INSTRUCTION-1:0] program_ [0:`CORES*`DEPTH-1];
    reg [31:0]             counts [0:`CORES-1];
    reg [BITS-1:0]         hbm [0:`CORES*`LINES-1];
    reg [63:0]             cycles = 0;
    reg [8*1024-1:0]       path;
    integer                limit, delay, patience, dead, death, events, i, k, n;

    initial begin
        done = 0;
        timeout = 0;
        stray = 0;
        if (!$value$plusargs("limit=%d", limit)) $fatal(1, "+limit is missing");
        if (!$value$plusargs("delay=%d", delay)) delay = 10;
        if (!$value$plusargs("patience=%d", patience)) patience = 3000;
        if (!$value$plusargs("dead=%d", dead)) dead = 0;
        if (!$value$plusargs("death=%d", death)) death = 0;
        if ($value$plusargs("program=%s", path)) $readmemh(path, program_);
        if ($value$plusargs("counts=%s", path)) $readmemh(path, counts);
        if ($value$plusargs("hbm=%s", path)) $readmemh(path, hbm);
        events = 0;
        if ($value$plusargs("events=%s", path)) events = $fopen(path, "w");
        if (events == 0) $fatal(1, "cannot open the file of events");
    end

    reg  [3:0] starting = 4'hf;
    wire       rst = starting != 0;
    integer    after_error = 0;
    wire [`CORES-1:0] failed, finished;
    always @(posedge clk) begin
        cycles <= cycles + 1;
        if (starting != 0) starting <= starting - 1;
        if (|failed) after_error <= after_error + 1;
        if (!done && !rst && (&finished || after_error == patience)) finish();
        if (!done && cycles == {32'b0, limit}) begin
            timeout <= 1;
            finish();
        end
    end

    task finish;
        begin
            if ($value$plusargs("hbm_out=%s", path)) $writememh(path, hbm);
            $fclose(events);
            done <= 1;
        end
    endtask

    function [BITS-1:0] merged(input [BITS-1:0] old, input [BITS-1:0] new_, input [`SIZE-1:0] mask);
        for (n = 0; n < `SIZE; n = n + 1) merged[8*n+:8] = mask[n] ? new_[8*n+:8] : old[8*n+:8];
    endfunction

    wire [PORTS-1:0]      o_valid, o_ready, i_ready;
    wire [`FLIT-1:0]       o_flit [0:PORTS-1];
    reg  [PORTS-1:0]      i_valid = 0;
    reg  [`FLIT-1:0]       i_flit [0:PORTS-1];

    genvar c, p;
    generate
        for (c = 0; c < `CORES; c = c + 1) begin : cores
            reg  [31:0] next = 0, retirements = 0;
            wire        ready, retired, busy;
            wire [`ERROR-1:0] error;
            reg         noted = 0;
            wire        offered = !ports[2*c].pause[7] && next < counts[c] && !rst;
            assign failed[c] = error[`ERROR_VALID];
            assign finished[c] = retirements == counts[c] && !busy && !error[`ERROR_VALID];
            collective_engine engine (
                .clk(clk), .rst(rst), .core(c),
                .instructions__payload(program_[c*`DEPTH+next]), .instructions__valid(offered),
                .instructions__ready(ready), .retired(retired), .error(error), .busy(busy),
                .counters(counters[`COUNTERS*c+:`COUNTERS]), .peer(peers[`PEER*c+:`PEER]), .active(),
                .dead(c == 0 && cycles >= death ? dead[3:0] : 4'd0),
                .i__0__payload(i_flit[2*c]), .i__0__valid(i_valid[2*c]), .i__0__ready(i_ready[2*c]),
                .i__1__payload(i_flit[2*c+1]), .i__1__valid(i_valid[2*c+1]), .i__1__ready(i_ready[2*c+1]),
                .o__0__payload(o_flit[2*c]), .o__0__valid(o_valid[2*c]), .o__0__ready(o_ready[2*c]),
                .o__1__payload(o_flit[2*c+1]), .o__1__valid(o_valid[2*c+1]), .o__1__ready(o_ready[2*c+1]),
`define AXI(n) \
                .axi__``n``__arvalid(ports[2*c+n].arvalid), .axi__``n``__arready(ports[2*c+n].arready), \
                .axi__``n``__arid(), .axi__``n``__araddr(ports[2*c+n].araddr), .axi__``n``__arlen(ports[2*c+n].arlen), \
                .axi__``n``__awvalid(ports[2*c+n].awvalid), .axi__``n``__awready(ports[2*c+n].awready), \
                .axi__``n``__awid(), .axi__``n``__awaddr(ports[2*c+n].awaddr), .axi__``n``__awlen(ports[2*c+n].awlen), \
                .axi__``n``__wvalid(ports[2*c+n].wvalid), .axi__``n``__wready(ports[2*c+n].wready), \
                .axi__``n``__wdata(ports[2*c+n].wdata), .axi__``n``__wstrb(ports[2*c+n].wstrb), \
                .axi__``n``__wlast(ports[2*c+n].wlast), .axi__``n``__bvalid(ports[2*c+n].bvalid), \
                .axi__``n``__bready(ports[2*c+n].bready), .axi__``n``__bid(1'b0), .axi__``n``__bresp(ports[2*c+n].bresp), \
                .axi__``n``__rvalid(ports[2*c+n].rvalid), .axi__``n``__rready(ports[2*c+n].rready), \
                .axi__``n``__rid(1'b0), .axi__``n``__rdata(ports[2*c+n].rdata), \
                .axi__``n``__rresp(ports[2*c+n].rresp), .axi__``n``__rlast(ports[2*c+n].rlast)
                `AXI(0), `AXI(1)
            );
            always @(posedge clk) begin
                if (offered && ready) begin
                    next <= next + 1;
                    $fwrite(events, "a %0d %0d\n", c, cycles);
                end
                if (retired) begin
                    retirements <= retirements + 1;
                    $fwrite(events, "r %0d %0d\n", c, cycles);
                    if (error[`ERROR_VALID]) stray <= 1;
                    if (ports[2*c].writing || ports[2*c].awvalid || ports[2*c+1].writing || ports[2*c+1].awvalid)
                        stray <= 6;  // before HBM has answered
                end
                if (error[`ERROR_VALID] && !rst && !noted) begin
                    noted <= 1;
                    $fwrite(events, "e %0d %0d %0d %0d %0d\n", c, cycles, error[`ERROR_CAUSE],
                            error[`ERROR_NUMBER], error[`ERROR_DETAIL]);
                end
                if (error[`ERROR_VALID] && busy) stray <= 2;
            end
        end

        // A port of HBM; addresses beyond the core's memory are answered with an error.
        for (p = 0; p < PORTS; p = p + 1) begin : ports
            wire [7:0]       pause, axi_stray;
            wire             arvalid, arready, awvalid, awready, wvalid, wready, wlast, rvalid, rready, rlast;
            wire             bvalid, bready, write, reading, writing;
            wire [39:0]      araddr, awaddr, read_address, write_address;
            wire [7:0]       arlen, awlen;
            wire [BITS-1:0]  wdata, rdata;
            wire [`SIZE-1:0] wstrb;
            wire [1:0]       rresp, bresp;
            wire [39:0]      r_line = read_address >> PLACE, w_line = write_address >> PLACE;
            wire [31:0]      base = (p / 2) * `LINES;
            pauses #(.SALT(p)) pausing (.clk(clk), .pause(pause), .noise());
            axi_responder #(.BYTES(`SIZE), .PENDING(PENDING)) responder (
                .clk(clk), .rst(rst), .pause(pause[4:0]),
                .arvalid(arvalid), .arready(arready), .araddr(araddr), .arlen(arlen),
                .awvalid(awvalid), .awready(awready), .awaddr(awaddr), .awlen(awlen),
                .wvalid(wvalid), .wready(wready), .wdata(wdata), .wstrb(wstrb), .wlast(wlast),
                .bvalid(bvalid), .bready(bready), .bresp(bresp),
                .rvalid(rvalid), .rready(rready), .rdata(rdata), .rresp(rresp), .rlast(rlast),
                .read_address(read_address), .read_bad(r_line >= `LINES),
                .read_data(r_line >= `LINES ? {BITS{1'b1}} : hbm[base+r_line]),
                .write(write), .write_address(write_address), .write_bad(w_line >= `LINES),
                .reading(reading), .writing(writing), .stray(axi_stray)
            );
            assign o_ready[p] = !pause[5] && o_in[p] - o_out[p] < PENDING;
            // What was offered and not taken stays.
            reg  [`FLIT-1:0] o_before;
            reg              o_waited = 0;
            always @(posedge clk) begin
                if (write) hbm[base+w_line] <= merged(hbm[base+w_line], wdata, wstrb);
                if (axi_stray != 0) stray <= axi_stray;
                o_waited <= !rst && o_valid[p] && !o_ready[p];
                o_before <= o_flit[p];
                if (o_waited && (!o_valid[p] || o_before != o_flit[p])) stray <= 3;
            end
        end
    endgenerate

    // The network: a queue for each source, and a choice for each destination.
    reg [`FLIT-1:0] flit, o_queue [0:PORTS*PENDING-1];
    reg [63:0]     o_due [0:PORTS*PENDING-1];
    reg [31:0]     o_in [0:PORTS-1], o_out [0:PORTS-1];
    reg [PORTS-1:0] busy_port;
    integer        source, target;
    reg [31:0]     turn = 0;
    initial for (i = 0; i < PORTS; i = i + 1) begin
        o_in[i] = 0;
        o_out[i] = 0;
    end
    always @(posedge clk) begin
        turn <= turn + 1;
        busy_port = i_valid & ~i_ready;
        if (busy_port != 0) stray <= 4;  // an engine takes what comes, at once
        i_valid <= busy_port;
        for (i = 0; i < PORTS; i = i + 1) begin
            source = (i + turn) % PORTS;
            if (o_in[source] != o_out[source] && cycles >= o_due[source*PENDING+o_out[source]%PENDING]) begin
                flit = o_queue[source*PENDING+o_out[source]%PENDING];
                target = {flit[`FLIT_HEADER_DESTINATION], flit[`FLIT_HEADER_CHANNEL]};
                if (target >= PORTS || flit[`FLIT_HEADER_SOURCE] != source / 2) stray <= 5;
                else if (!busy_port[target]) begin
                    busy_port[target] = 1;
                    i_valid[target] <= 1;
                    i_flit[target] <= flit;
                    o_out[source] <= o_out[source] + 1;
                end
            end
        end
        for (k = 0; k < PORTS; k = k + 1)
            if (o_valid[k] && o_ready[k] && !rst) begin
                o_queue[k*PENDING+o_in[k]%PENDING] <= o_flit[k];
                o_due[k*PENDING+o_in[k]%PENDING] <= cycles + delay;
                o_in[k] <= o_in[k] + 1;
            end
    end
endmodule
