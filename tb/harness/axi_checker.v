// Watches an AXI4 port of this machine (hdl/memory/axi.py) and ends the simulation at what the protocol forbids:
//   a request or a response that changes or vanishes before it is taken; unknown bits in what is valid;
//   a burst that is misaligned, longer than MAX_BEATS, or crosses 4 KiB;
//   a last beat that comes too early or too late, in writes and in reads;
//   a response with an ID that waits for none, and one to a write that is not complete.
// `idle`: everything that was asked for has been answered.
module axi_checker #(
    parameter BYTES = 64,
    parameter ID_BITS = 1,
    parameter MAX_BEATS = 64
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire                 awvalid,
    input  wire                 awready,
    input  wire [ID_BITS-1:0]   awid,
    input  wire [39:0]          awaddr,
    input  wire [7:0]           awlen,
    input  wire                 wvalid,
    input  wire                 wready,
    input  wire [8*BYTES-1:0]   wdata,
    input  wire [BYTES-1:0]     wstrb,
    input  wire                 wlast,
    input  wire                 bvalid,
    input  wire                 bready,
    input  wire [ID_BITS-1:0]   bid,
    input  wire [1:0]           bresp,
    input  wire                 arvalid,
    input  wire                 arready,
    input  wire [ID_BITS-1:0]   arid,
    input  wire [39:0]          araddr,
    input  wire [7:0]           arlen,
    input  wire                 rvalid,
    input  wire                 rready,
    input  wire [ID_BITS-1:0]   rid,
    input  wire [8*BYTES-1:0]   rdata,
    input  wire [1:0]           rresp,
    input  wire                 rlast,
    output wire                 idle
);
    localparam IDS = 1 << ID_BITS;
    localparam BURSTS = 256;  // of an ID, or whose beats have not all come; a power of two

    task violated(input [8*64-1:0] rule);
        $fatal(1, "%m: %0s", rule);
    endtask

    // What was offered in the cycle before and not taken; it must be offered again.
    reg                  aw_held, w_held, b_held, ar_held, r_held;
    reg [ID_BITS+47:0]   aw_was, ar_was;
    reg [8*BYTES-1:0]    wdata_was, rdata_was;
    reg [BYTES:0]        w_was;
    reg [ID_BITS+1:0]    b_was;
    reg [ID_BITS+2:0]    r_was;
    always @(posedge clk)
        if (rst) begin
            aw_held <= 0;
            w_held <= 0;
            b_held <= 0;
            ar_held <= 0;
            r_held <= 0;
        end else begin
            if (aw_held && (!awvalid || aw_was != {awid, awaddr, awlen})) violated("AW changes before it is taken");
            if (ar_held && (!arvalid || ar_was != {arid, araddr, arlen})) violated("AR changes before it is taken");
            if (w_held && (!wvalid || w_was != {wlast, wstrb} || wdata_was !== wdata))
                violated("W changes before it is taken");
            if (b_held && (!bvalid || b_was != {bid, bresp})) violated("B changes before it is taken");
            if (r_held && (!rvalid || r_was != {rid, rresp, rlast} || rdata_was !== rdata))
                violated("R changes before it is taken");
            aw_held <= awvalid && !awready;
            ar_held <= arvalid && !arready;
            w_held <= wvalid && !wready;
            b_held <= bvalid && !bready;
            r_held <= rvalid && !rready;
            if (awvalid && !awready) aw_was <= {awid, awaddr, awlen};
            if (arvalid && !arready) ar_was <= {arid, araddr, arlen};
            if (bvalid && !bready) b_was <= {bid, bresp};
            if (wvalid && !wready) begin
                w_was <= {wlast, wstrb};
                wdata_was <= wdata;
            end
            if (rvalid && !rready) begin
                r_was <= {rid, rresp, rlast};
                rdata_was <= rdata;
            end
        end

    task check_burst(input [39:0] address, input [7:0] len);
        reg [39:0] last;
        begin
            last = address + {32'd0, len} * BYTES;
            if (({16'd0, address[15:0]} & (BYTES - 1)) != 0) violated("the address is not a multiple of the beat");
            if ({24'd0, len} >= MAX_BEATS) violated("the burst is too long");
            if (address[39:12] != last[39:12]) violated("the burst crosses 4 KiB");
        end
    endtask

`ifndef VERILATOR
    integer n;
    always @(posedge clk) if (!rst) begin
        if (^{awvalid, wvalid, arvalid, bvalid, rvalid, awready, wready, arready, bready, rready} === 1'bx)
            violated("a handshake is unknown");
        if (awvalid && ^{awid, awaddr, awlen} === 1'bx) violated("AW is unknown");
        if (arvalid && ^{arid, araddr, arlen} === 1'bx) violated("AR is unknown");
        if (wvalid && ^{wlast, wstrb} === 1'bx) violated("W is unknown");
        if (bvalid && ^{bid, bresp} === 1'bx) violated("B is unknown");
        if (rvalid && ^{rid, rresp, rlast, rdata} === 1'bx) violated("R is unknown");
        if (wvalid && ^wdata === 1'bx)
            for (n = 0; n < BYTES; n = n + 1)
                if (wstrb[n] && ^wdata[8*n +: 8] === 1'bx) violated("a byte that is written is unknown");
    end
`endif

    // Lengths of the bursts that each ID reads, in order; and the beats that have come of the first.
    reg [7:0]  r_len [0:IDS*BURSTS-1];
    reg [31:0] r_first [0:IDS-1], r_count [0:IDS-1], r_beats [0:IDS-1];
    // Bursts to write: lengths and IDs by address; lengths by beats. Whichever comes first waits for the other.
    reg [7:0]  aw_len [0:BURSTS-1], w_len [0:BURSTS-1];
    reg [ID_BITS-1:0] aw_by [0:BURSTS-1];
    reg [31:0] aw_first, aw_count, w_first, w_count, w_beats;
    // Bursts that are written and not yet answered, of each ID.
    reg [31:0] b_count [0:IDS-1];
    reg [31:0] waiting;  // everything that is to be answered
    integer    id;

    assign idle = waiting == 0 && w_count == 0 && w_beats == 0;
    always @(posedge clk)
        if (rst) begin
            for (id = 0; id < IDS; id = id + 1) begin
                r_first[id] = 0;
                r_count[id] = 0;
                r_beats[id] = 0;
                b_count[id] = 0;
            end
            aw_first = 0;
            aw_count = 0;
            w_first = 0;
            w_count = 0;
            w_beats = 0;
            waiting = 0;
        end else begin
            // A response answers what was taken in an earlier cycle.
            if (rvalid) begin
                if (r_count[rid] == 0) violated("R answers nothing");
                if (rlast != (r_beats[rid] == {24'd0, r_len[rid * BURSTS + r_first[rid] % BURSTS]}))
                    violated("RLAST is wrong");
                if (rready) begin
                    r_beats[rid] = rlast ? 0 : r_beats[rid] + 1;
                    if (rlast) begin
                        r_first[rid] = r_first[rid] + 1;
                        r_count[rid] = r_count[rid] - 1;
                        waiting = waiting - 1;
                    end
                end
            end
            if (bvalid) begin
                if (b_count[bid] == 0) violated("B answers nothing");
                if (bready) begin
                    b_count[bid] = b_count[bid] - 1;
                    waiting = waiting - 1;
                end
            end
            if (arvalid) check_burst(araddr, arlen);
            if (arvalid && arready) begin
                if (r_count[arid] == BURSTS) violated("more reads than can be watched");
                r_len[arid * BURSTS + (r_first[arid] + r_count[arid]) % BURSTS] = arlen;
                r_count[arid] = r_count[arid] + 1;
                waiting = waiting + 1;
            end
            if (awvalid) check_burst(awaddr, awlen);
            if (awvalid && awready) begin
                if (aw_count == BURSTS) violated("more writes than can be watched");
                aw_len[(aw_first + aw_count) % BURSTS] = awlen;
                aw_by[(aw_first + aw_count) % BURSTS] = awid;
                aw_count = aw_count + 1;
                waiting = waiting + 1;
            end
            if (wvalid && wready) begin
                if (aw_count != 0 && w_count == 0 && wlast != (w_beats == {24'd0, aw_len[aw_first % BURSTS]}))
                    violated("WLAST is wrong");
                w_beats = w_beats + 1;
                if (wlast) begin
                    if (w_count == BURSTS) violated("more writes than can be watched");
                    w_len[(w_first + w_count) % BURSTS] = w_beats[7:0] - 1;
                    w_count = w_count + 1;
                    w_beats = 0;
                end
            end
            if (aw_count != 0 && w_count != 0) begin
                if (aw_len[aw_first % BURSTS] != w_len[w_first % BURSTS]) violated("WLAST is wrong");
                b_count[aw_by[aw_first % BURSTS]] = b_count[aw_by[aw_first % BURSTS]] + 1;
                aw_first = aw_first + 1;
                aw_count = aw_count - 1;
                w_first = w_first + 1;
                w_count = w_count - 1;
            end
        end
endmodule
