// Runs images on a core: HBM is loaded from a file, every image named in a file is booted in its turn, and what became of
// it is written to files; HBM too, in the end. Nothing is moved by hand while an image runs.
//
// Plusargs, besides those of tb/harness/hbm.v:
//   +boots=FILE, +boots_count=N   boot addresses, hexadecimal, one a line; the core is reset before each
//   +limit=N      cycles after which an image is given up
//   +host=N       cycle after the start in which the host interrupts the controller; 0 for never
//   +runs=FILE    a line for each image: cycles until its program ended, whether it did and with which code, whether it
//                 was given up, the error, and all counters
//   +events=FILE  "i QUEUE ADDRESS CYCLE" for a record that an engine takes, "r LANE ADDRESS CYCLE" for one that it has
//                 finished, "s NUMBER" before those of each image; "c BYTE" what the program prints
//   +trace=FILE   "CYCLE PC" for every instruction of the controller; optional
`timescale 1ns / 1ps

module machine (
    input  wire clk,
    output reg  done
);
    // Cycles without anything happening before an image that has ended is left, and one whose program does not end after
    // an error.
    localparam REST = 256;
    localparam PATIENCE = 8192;
    localparam AW = 40;

    reg [8*1024-1:0] path;
    reg [39:0] boots [0:255];
    integer boots_count, limit, host, runs, events, trace, current, rest, waited, i;
    initial begin
        done = 0;
        current = 0;
        trace = 0;
        if (!$value$plusargs("limit=%d", limit)) $fatal(1, "+limit is missing");
        if (!$value$plusargs("boots_count=%d", boots_count)) $fatal(1, "+boots_count is missing");
        if (!$value$plusargs("host=%d", host)) host = 0;
        if (!$value$plusargs("boots=%s", path)) $fatal(1, "+boots is missing");
        $readmemh(path, boots, 0, boots_count - 1);
        if (!$value$plusargs("runs=%s", path)) $fatal(1, "+runs is missing");
        runs = $fopen(path, "w");
        if (!$value$plusargs("events=%s", path)) $fatal(1, "+events is missing");
        events = $fopen(path, "w");
        if ($value$plusargs("trace=%s", path)) trace = $fopen(path, "w");
        if (runs == 0 || events == 0) $fatal(1, "a file cannot be written");
    end

    wire [`PORTS-1:0]            awvalid, awready, wvalid, wready, wlast, bvalid, bready;
    wire [`PORTS-1:0]            arvalid, arready, rvalid, rready, rlast;
    wire [`PORTS*`ID_BITS-1:0]   awid, bid, arid, rid;
    wire [`PORTS*40-1:0]         awaddr, araddr;
    wire [`PORTS*8-1:0]          awlen, arlen;
    wire [`PORTS*8*`BYTES-1:0]   wdata, rdata;
    wire [`PORTS*`BYTES-1:0]     wstrb;
    wire [`PORTS*2-1:0]          bresp, rresp;

    // reset, then a cycle of start, then the image runs.
    reg [7:0]  countdown = 8'd16;
    wire       rst = countdown > 8'd1;
    wire       start = countdown == 8'd1;
    reg [47:0] cycle = 0;
    reg [47:0] ended = 0;
    wire       over, quiet, console_valid, controller_retires;
    wire [7:0] console_data;
    wire [31:0] exit_code, controller_pc;
    wire [`ERROR-1:0] error;
    wire [`QUEUES-1:0]       issued;
    wire [`QUEUES*AW-1:0]    issued_addresses;
    wire [`QUEUES:0]         retired;
    wire [(`QUEUES+1)*AW-1:0] retired_addresses;
    wire [`COUNTERS-1:0]     counters;
    wire failed = error[`ERROR_VALID];
    wire given_up = cycle == {16'd0, limit};
    wire finished = (over && rest >= REST) || (failed && waited >= PATIENCE) || given_up;

    always @(posedge clk) if (!done) begin
        if (rst) begin
            countdown <= countdown - 8'd1;
            cycle <= 0;
            rest <= 0;
            waited <= 0;
            ended <= 0;
            if (countdown == 8'd2) $fwrite(events, "s %0d\n", current);
        end else begin
            countdown <= 0;
            cycle <= cycle + 1;
            rest <= quiet ? rest + 1 : 0;
            waited <= failed && quiet ? waited + 1 : 0;
            if (!over) ended <= cycle;
            if (console_valid) $fwrite(events, "c %0d\n", console_data);
            if (|issued) for (i = 0; i < `QUEUES; i = i + 1)
                if (issued[i]) $fwrite(events, "i %0d %h %0d\n", i, issued_addresses[AW*i +: AW], cycle);
            if (|retired) for (i = 0; i <= `QUEUES; i = i + 1)
                if (retired[i]) $fwrite(events, "r %0d %h %0d\n", i, retired_addresses[AW*i +: AW], cycle);
            if (trace != 0 && controller_retires) $fwrite(trace, "%0d %h\n", cycle, controller_pc);
            if (finished) begin
                $fwrite(runs, "%0d %0d %h %0d %0d %0d %h %h %h\n", ended, over, exit_code, given_up && !over,
                        failed ? {24'd0, error[`ERROR_CAUSE]} : 0, error[`ERROR_QUEUE], error[`ERROR_ADDRESS],
                        error[`ERROR_DETAIL], counters);
                current <= current + 1;
                countdown <= 8'd16;
                cycle <= 0;
                if (current + 1 == boots_count || given_up) begin
                    done <= 1;
                    $fclose(runs);
                    $fclose(events);
                    if (trace != 0) $fclose(trace);
                end
            end
        end
    end

    wire dump = !done && !rst && finished && (current + 1 == boots_count || given_up);

    core core (
        .clk(clk),
        .rst(rst),
        .start(start),
        .boot_address(boots[current[7:0]]),
        .host_interrupt(host != 0 && cycle == {16'd0, host}),
        .done(over),
        .exit_code(exit_code),
        .error(error),
        .quiet(quiet),
        .console__valid(console_valid),
        .console__payload(console_data),
        .issued(issued),
        .issued_addresses(issued_addresses),
        .retired(retired),
        .retired_addresses(retired_addresses),
        .controller_retires(controller_retires),
        .controller_pc(controller_pc),
        `CORE_AXI
        .counters(counters)
    );

    hbm #(.PORTS(`PORTS), .BYTES(`BYTES), .ID_BITS(`ID_BITS), .DEPTH(`DEPTH)) hbm (
        .clk(clk),
        .rst(rst),
        .dump(dump),
        .awvalid(awvalid),
        .awready(awready),
        .awid(awid),
        .awaddr(awaddr),
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
        .araddr(araddr),
        .arlen(arlen),
        .rvalid(rvalid),
        .rready(rready),
        .rid(rid),
        .rdata(rdata),
        .rresp(rresp),
        .rlast(rlast)
    );

`ifdef CHECK_AXI
    genvar port;
    generate
        for (port = 0; port < `PORTS; port = port + 1) begin : checkers
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
