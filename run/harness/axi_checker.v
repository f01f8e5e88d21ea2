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
    input  wire                 clk, rst,
    input  wire                 awvalid, wvalid, wlast, bready, arvalid, rready,
    input  wire                 awready, wready, bvalid, arready, rvalid, rlast,
    input  wire [ID_BITS-1:0]   awid, arid, bid, rid,
    input  wire [39:0]          awaddr, araddr,
    input  wire [7:0]           awlen, arlen,
    input  wire [8*BYTES-1:0]   wdata, rdata,
    input  wire [BYTES-1:0]     wstrb,
    input  wire [1:0]           bresp, rresp,
    output wire                 idle
);
    localparam IDS = 1 << ID_BITS;
    localparam BURSTS = 256;  // of an ID, or whose beats have not all come; a power of two

    task violated(input [8*64-1:0] rule);
        $fatal(1, "%m: %0s", rule);
    endtask

    axi_offer #("AW", ID_BITS + 48) aw (clk, rst, awvalid, awready, {awid, awaddr, awlen});
    axi_offer #("AR", ID_BITS + 48) ar (clk, rst, arvalid, arready, {arid, araddr, arlen});
    axi_offer #("W", 9 * BYTES + 1, 8 * BYTES) w (clk, rst, wvalid, wready, {wlast, wstrb, wdata});
    axi_offer #("B", ID_BITS + 2) b (clk, rst, bvalid, bready, {bid, bresp});
    axi_offer #("R", ID_BITS + 3 + 8 * BYTES) r (clk, rst, rvalid, rready, {rid, rresp, rlast, rdata});

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
    always @(posedge clk)
        if (!rst && wvalid && ^wdata === 1'bx)
            for (n = 0; n < BYTES; n = n + 1)
                if (wstrb[n] && ^wdata[8*n +: 8] === 1'bx) violated("a byte that is written is unknown");
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
            for (id = 0; id < IDS; id = id + 1) {r_first[id], r_count[id], r_beats[id], b_count[id]} = 0;
            {aw_first, aw_count, w_first, w_count, w_beats, waiting} = 0;
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

// What is offered at a channel must be known, but for the lowest OPEN bits, and offered again if it is not taken.
module axi_offer #(
    parameter CHANNEL = "AW",
    parameter BITS = 1,
    parameter OPEN = 0
) (
    input  wire            clk, rst, valid, ready,
    input  wire [BITS-1:0] payload
);
    reg            held;
    reg [BITS-1:0] was;
    always @(posedge clk) begin
        if (!rst && held && (!valid || was !== payload)) $fatal(1, "%m: %0s changes before it is taken", CHANNEL);
`ifndef VERILATOR
        if (!rst && ^{valid, ready} === 1'bx) $fatal(1, "%m: a handshake is unknown");
        if (!rst && valid && ^payload[BITS-1:OPEN] === 1'bx) $fatal(1, "%m: %0s is unknown", CHANNEL);
`endif
        held <= !rst && valid && !ready;
        if (valid && !ready) was <= payload;
    end
endmodule
