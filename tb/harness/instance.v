// Runs an image on every core of an instance: one memory holds every core's HBM, one file says where and when each core
// boots, and what became of them is written to files; the memory too, in the end. Nothing is moved by hand meanwhile.
//
// Plusargs, besides those of tb/harness/hbm.v, tb/harness/disturbance.v and tb/harness/link_view.v:
//   +boots=FILE   a line for each core, hexadecimal: whether it is started at all, 32 bits of cycles that pass before it
//                 is, 40 bits of the address that it boots from
//   +room=N       bytes of HBM of each core; core i's are at i * N in the memory. Beyond them: DECERR
//   +limit=N      cycles after which the run is given up
//   +patience=N   cycles in which every core rests before a run is left in which one with an error, or one that was not
//                 started, keeps its program from ending
//   +runs=FILE    "end CYCLES GIVEN_UP"; "core NUMBER" and the rest of a line as tb/harness/core.v's, its cycles from when all
//                 of them could start; "wire NUMBER", whether its link is dead, disturbed frames, the counters of the
//                 end that sends
//   +events=FILE  "i CORE QUEUE ADDRESS CYCLE" for a record that an engine takes, "r CORE LANE ADDRESS CYCLE" for one
//                 that it has finished, "c CORE BYTE" for what a program prints
`timescale 1ns / 1ps

module machines (
    input  wire clk,
    output reg  done
);
    // Cycles without anything happening before a run is left in which every program has ended.
    localparam [31:0] REST = 256;
    localparam PORTS = `CORES * `CORE_PORTS;

    reg [8*1024-1:0] path;
    reg [72:0]       boots [0:`CORES-1];
    reg [39:0]       room;
    reg [31:0]       limit, patience;
    integer          runs, events, c, w;
    initial begin
        done = 0;
        if (!$value$plusargs("room=%d", room)) $fatal(1, "+room is missing");
        if (!$value$plusargs("limit=%d", limit)) $fatal(1, "+limit is missing");
        if (!$value$plusargs("patience=%d", patience)) patience = 8192;
        if (!$value$plusargs("boots=%s", path)) $fatal(1, "+boots is missing");
        $readmemh(path, boots, 0, `CORES - 1);
        if (!$value$plusargs("runs=%s", path)) $fatal(1, "+runs is missing");
        runs = $fopen(path, "w");
        if (!$value$plusargs("events=%s", path)) $fatal(1, "+events is missing");
        events = $fopen(path, "w");
        if (runs == 0 || events == 0) $fatal(1, "a file cannot be written");
    end

    wire [PORTS-1:0]            awvalid, awready, wvalid, wready, wlast, bvalid, bready;
    wire [PORTS-1:0]            arvalid, arready, rvalid, rready, rlast;
    wire [PORTS*`ID_BITS-1:0]   awid, bid, arid, rid;
    wire [PORTS*40-1:0]         awaddr, araddr;
    wire [PORTS*8-1:0]          awlen, arlen;
    wire [PORTS*8*`BYTES-1:0]   wdata, rdata;
    wire [PORTS*`BYTES-1:0]     wstrb;
    wire [PORTS*2-1:0]          bresp, rresp;

    reg [7:0]  reset = 8'd16;
    wire       rst = reset != 0;
    reg [31:0] cycle = 0;
    always @(posedge clk) if (rst) reset <= reset - 8'd1;

    wire [`WIRES-1:0]    flip, drop, repeated, cut;
    wire [`WIRES*10-1:0] flip_bit;
    wire [`WIRES*32-1:0] disturbed;
    disturbance disturbance (
        .clk(clk), .rst(rst), .cycle(cycle), .flip(flip), .flip_bit(flip_bit), .drop(drop), .repeated(repeated),
        .cut(cut), .disturbed(disturbed)
    );

    // Who runs: a core that is not started is as good as one with an error.
    reg  [`CORES-1:0]      waits, start, stopped;
    wire [`CORES-1:0]      over, failed, quiet;
    reg  [`CORES-1:0]      over_before;
    reg  [31:0]            ended [0:`CORES-1];
    reg  [31:0]            still;
    reg                    closing;
    wire [`WIRES-1:0]      dead;
    wire [`WIRES*`LINK_COUNTERS-1:0] link_counters;
    wire given_up = cycle == limit;
    wire rests = waits == 0 && start == 0 && &quiet;
    wire finished = !rst && !closing && !done
        && ((&over && still >= REST) || (&(over | failed | stopped) && still >= patience) || given_up);
    wire dump = finished;

    always @(posedge clk) begin
        if (rst) begin
            cycle <= 0;
            still <= 0;
            closing <= 0;
            start <= 0;
            over_before <= 0;
            /* verilator unroll_disable */
            for (c = 0; c < `CORES; c = c + 1) begin
                waits[c] <= boots[c][72];
                stopped[c] <= !boots[c][72];
            end
        end else if (!done) begin
            cycle <= cycle + 1;
            still <= rests ? still + 1 : 0;
            if (|{waits, start}) begin
                start <= 0;
                /* verilator unroll_disable */
                for (c = 0; c < `CORES; c = c + 1) if (waits[c] && cycle >= boots[c][71:40]) begin
                    waits[c] <= 0;
                    start[c] <= 1;
                end
            end
            if (over != over_before) begin
                over_before <= over;
                /* verilator unroll_disable */
                for (c = 0; c < `CORES; c = c + 1) if (over[c] && !over_before[c]) ended[c] <= cycle - 1;
            end
            if (finished) begin
                closing <= 1;
                $fwrite(runs, "end %0d %0d\n", cycle, given_up);
                /* verilator unroll_disable */
                for (w = 0; w < `WIRES; w = w + 1)
                    $fwrite(runs, "wire %0d %0d %0d %h\n", w, dead[w], disturbed[32*w +: 32],
                            link_counters[w*`LINK_COUNTERS +: `LINK_COUNTERS]);
            end
            if (closing) begin
                $fclose(runs);
                $fclose(events);
                done <= 1;
            end
        end
    end

    `CORE_WIRES
    linked_cores cores (
        .clk(clk),
        .rst(rst),
        `CORE_CONNECTIONS
        .flip(flip),
        .flip_bit(flip_bit),
        .drop(drop),
        .repeated(repeated),
        .cut(cut),
        .dead(dead),
        .link_counters(link_counters)
    );
    `CORE_LOGS

    wire        sampling;
    wire [31:0] samples;
    link_sampler sampler (
        .clk(clk), .rst(rst), .cycle(cycle), .last(finished), .sampling(sampling), .samples(samples)
    );
    `LINK_VIEWS

    // A core's address in the memory of all; far beyond its end if it is beyond the core's.
    wire [PORTS*40-1:0] awplace, arplace;
    genvar port;
    generate
        for (port = 0; port < PORTS; port = port + 1) begin : places
            assign awplace[40*port +: 40] = awaddr[40*port +: 40] < room
                ? room * (port / `CORE_PORTS) + awaddr[40*port +: 40] : 40'hffffff0000;
            assign arplace[40*port +: 40] = araddr[40*port +: 40] < room
                ? room * (port / `CORE_PORTS) + araddr[40*port +: 40] : 40'hffffff0000;
        end
    endgenerate

    hbm #(.PORTS(PORTS), .BYTES(`BYTES), .ID_BITS(`ID_BITS), .DEPTH(`DEPTH)) hbm (
        .clk(clk),
        .rst(rst),
        .dump(dump),
        .awvalid(awvalid),
        .awready(awready),
        .awid(awid),
        .awaddr(awplace),
        .awlen(awlen),
        .wvalid(wvalid),
        .wready(wready),
        .wdata(wdata),
        .wstrb(wstrb),
        .wlast(wlast),
        .bvalid(bvalid),
        .bready(bready),
        .bid(bid),
        .bresp(bresp),
        .arvalid(arvalid),
        .arready(arready),
        .arid(arid),
        .araddr(arplace),
        .arlen(arlen),
        .rvalid(rvalid),
        .rready(rready),
        .rid(rid),
        .rdata(rdata),
        .rresp(rresp),
        .rlast(rlast)
    );

`ifdef CHECK_AXI
    generate
        for (port = 0; port < PORTS; port = port + 1) begin : checkers
            /* verilator lint_off UNUSEDSIGNAL */
            wire idle;
            /* verilator lint_on UNUSEDSIGNAL */
            axi_checker #(.BYTES(`BYTES), .ID_BITS(`ID_BITS)) watched (
                .clk(clk),
                .rst(rst),
                .awvalid(awvalid[port]),
                .awready(awready[port]),
                .awid(awid[`ID_BITS*port +: `ID_BITS]),
                .awaddr(awaddr[40*port +: 40]),
                .awlen(awlen[8*port +: 8]),
                .wvalid(wvalid[port]),
                .wready(wready[port]),
                .wdata(wdata[8*`BYTES*port +: 8*`BYTES]),
                .wstrb(wstrb[`BYTES*port +: `BYTES]),
                .wlast(wlast[port]),
                .bvalid(bvalid[port]),
                .bready(bready[port]),
                .bid(bid[`ID_BITS*port +: `ID_BITS]),
                .bresp(bresp[2*port +: 2]),
                .arvalid(arvalid[port]),
                .arready(arready[port]),
                .arid(arid[`ID_BITS*port +: `ID_BITS]),
                .araddr(araddr[40*port +: 40]),
                .arlen(arlen[8*port +: 8]),
                .rvalid(rvalid[port]),
                .rready(rready[port]),
                .rid(rid[`ID_BITS*port +: `ID_BITS]),
                .rdata(rdata[8*`BYTES*port +: 8*`BYTES]),
                .rresp(rresp[2*port +: 2]),
                .rlast(rlast[port]),
                .idle(idle)
            );
        end
    endgenerate
`endif
endmodule

// What a core does, in the files of all.
module core_log (
    input wire        clk,
    input wire        rst,
    input wire [31:0] number,
    input wire [31:0] cycle,
    input wire        finished,
    input wire        given_up,
    input wire [31:0] runs,
    input wire [31:0] events,
    input wire [31:0] ended,
    input wire        over,
    input wire [31:0] exit_code,
    input wire [`ERROR-1:0] error,
    input wire        console__valid,
    input wire [7:0]  console__payload,
    input wire [`QUEUES-1:0]         issued,
    input wire [`QUEUES*40-1:0]      issued_addresses,
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
    integer i;
    always @(posedge clk) if (!rst) begin
        if (console__valid) $fwrite(events, "c %0d %0d\n", number, console__payload);
        if (|issued) begin
            /* verilator unroll_disable */
            for (i = 0; i < `QUEUES; i = i + 1) if (issued[i])
                $fwrite(events, "i %0d %0d %h %0d\n", number, i, issued_addresses[40*i +: 40], cycle);
        end
        if (|retired) begin
            /* verilator unroll_disable */
            for (i = 0; i <= `QUEUES; i = i + 1) if (retired[i])
                $fwrite(events, "r %0d %0d %h %0d\n", number, i, retired_addresses[40*i +: 40], cycle);
        end
        if (finished)
            $fwrite(runs, "core %0d %0d %0d %h %0d %0d %0d %h %h %h\n", number, over ? ended : cycle, over, exit_code,
                    given_up && !over, error[`ERROR_VALID] ? {24'd0, error[`ERROR_CAUSE]} : 0, error[`ERROR_QUEUE],
                    error[`ERROR_ADDRESS], error[`ERROR_DETAIL],
                    counters);
    end
endmodule
