// The HBM of all cores of a harness: one memory, in which core i's begins at i * room. A core's addresses beyond its room
// are far beyond the end of all. With `CHECK_AXI every port is watched for what the protocol forbids.
`timescale 1ns / 1ps

module memories #(
    parameter PORTS = 1,        // of all cores; of each signal, port 0 has the lowest bits
    parameter PORTS_EACH = 1,   // of a core
    parameter BYTES = 64,       // of a beat
    parameter ID_BITS = 1,
    parameter DEPTH = 1 << 20   // beats
) (
    input  wire                     clk,
    input  wire                     rst,
    input  wire                     dump,
    input  wire [39:0]              room,
    output wire [PORTS-1:0]         idle,  // whether all of a port's bursts are answered; 0 if nobody watches
    input  wire [PORTS-1:0]         awvalid,
    output wire [PORTS-1:0]         awready,
    input  wire [PORTS*ID_BITS-1:0] awid,
    input  wire [PORTS*40-1:0]      awaddr,
    input  wire [PORTS*8-1:0]       awlen,
    input  wire [PORTS-1:0]         wvalid,
    output wire [PORTS-1:0]         wready,
    input  wire [PORTS*8*BYTES-1:0] wdata,
    input  wire [PORTS*BYTES-1:0]   wstrb,
    input  wire [PORTS-1:0]         wlast,
    output wire [PORTS-1:0]         bvalid,
    input  wire [PORTS-1:0]         bready,
    output wire [PORTS*ID_BITS-1:0] bid,
    output wire [PORTS*2-1:0]       bresp,
    input  wire [PORTS-1:0]         arvalid,
    output wire [PORTS-1:0]         arready,
    input  wire [PORTS*ID_BITS-1:0] arid,
    input  wire [PORTS*40-1:0]      araddr,
    input  wire [PORTS*8-1:0]       arlen,
    output wire [PORTS-1:0]         rvalid,
    input  wire [PORTS-1:0]         rready,
    output wire [PORTS*ID_BITS-1:0] rid,
    output wire [PORTS*8*BYTES-1:0] rdata,
    output wire [PORTS*2-1:0]       rresp,
    output wire [PORTS-1:0]         rlast
);
    wire [PORTS*40-1:0] awplace, arplace;
    genvar port;
    generate
        for (port = 0; port < PORTS; port = port + 1) begin : places
            assign awplace[40*port +: 40] = awaddr[40*port +: 40] < room
                ? room * (port / PORTS_EACH) + awaddr[40*port +: 40] : 40'hffffff0000;
            assign arplace[40*port +: 40] = araddr[40*port +: 40] < room
                ? room * (port / PORTS_EACH) + araddr[40*port +: 40] : 40'hffffff0000;
        end
    endgenerate

    hbm #(.PORTS(PORTS), .BYTES(BYTES), .ID_BITS(ID_BITS), .DEPTH(DEPTH)) hbm (
        .clk(clk), .rst(rst), .dump(dump),
        .awvalid(awvalid), .awready(awready), .awid(awid), .awaddr(awplace), .awlen(awlen), .wvalid(wvalid),
        .wready(wready), .wdata(wdata), .wstrb(wstrb), .wlast(wlast), .bvalid(bvalid), .bready(bready), .bid(bid),
        .bresp(bresp), .arvalid(arvalid), .arready(arready), .arid(arid), .araddr(arplace), .arlen(arlen),
        .rvalid(rvalid), .rready(rready), .rid(rid), .rdata(rdata), .rresp(rresp), .rlast(rlast)
    );

`ifdef CHECK_AXI
    generate
        for (port = 0; port < PORTS; port = port + 1) begin : checkers
            axi_checker #(.BYTES(BYTES), .ID_BITS(ID_BITS)) watched (
                .clk(clk), .rst(rst), .idle(idle[port]),
                .awvalid(awvalid[port]), .awready(awready[port]),
                .awid(awid[ID_BITS*port +: ID_BITS]), .awaddr(awaddr[40*port +: 40]), .awlen(awlen[8*port +: 8]),
                .wvalid(wvalid[port]), .wready(wready[port]),
                .wdata(wdata[8*BYTES*port +: 8*BYTES]), .wstrb(wstrb[BYTES*port +: BYTES]), .wlast(wlast[port]),
                .bvalid(bvalid[port]), .bready(bready[port]), .bid(bid[ID_BITS*port +: ID_BITS]),
                .bresp(bresp[2*port +: 2]), .arvalid(arvalid[port]), .arready(arready[port]),
                .arid(arid[ID_BITS*port +: ID_BITS]), .araddr(araddr[40*port +: 40]), .arlen(arlen[8*port +: 8]),
                .rvalid(rvalid[port]), .rready(rready[port]), .rid(rid[ID_BITS*port +: ID_BITS]),
                .rdata(rdata[8*BYTES*port +: 8*BYTES]), .rresp(rresp[2*port +: 2]), .rlast(rlast[port])
            );
        end
    endgenerate
`else
    assign idle = 0;
`endif
endmodule
