// HBM: one memory behind any number of AXI4 ports, as fast to simulate as it can be. Bursts are incrementing and of
// whole beats (hdl/memory/axi.py). The memory is loaded from a file when the simulation starts, and written to one when
// `dump` is high at a clock edge.
//
// A beat is read when it is delivered, and written just before its response: who does not wait for the response may
// read old data. Ports, and reads and writes, take turns where bandwidth is short.
//
// Plusargs (run/harness/hbm.py makes them); sizes in bytes, times in cycles:
//   +hbm=FILE, +hbm_beats=N      content of the first N beats: raw bytes, of every beat the last one first
//   +hbm_out=FILE, +hbm_out_beats=N   where `dump` writes as many: raw bytes in their order
//   +hbm_size=S                  addresses from here on do not exist: DECERR; at most and by default DEPTH * BYTES
//   +hbm_room=N                  of each core, whose own begin in the memory behind those of the cores before it; a
//                                core's addresses beyond its room do not exist; 0 and by default: all belong to all
//   +hbm_base=A                  address of the memory's first byte, or of each core's; 0 by default
//   +hbm_latency=L               from an address, or the last beat written, to the response; at least 1, by default 64
//   +hbm_gap=G                   that a port rests after each burst, once for reads and once for writes
//   +hbm_port_rate=B, +hbm_rate=B     what one port, or all together, may read and write in 256 cycles; 0: no limit
//   +hbm_stall=P                 every handshake of every channel pauses in P of 256 cycles, at random
//   +hbm_reorder=P               in P of 256 cycles a burst or a response overtakes others, of other IDs
//   +hbm_interleave=1            so it does in the midst of a burst that is read
//   +hbm_seed=S                  of what is random
//   +hbm_slverr_low=A, +hbm_slverr_high=A   hexadecimal: every beat from low up to, but without, high is answered with
//                                SLVERR and neither read nor written; a burst that is written gets the worst response
//                                of its beats. The range is in beats: low and high are rounded down to them.
//   +hbm_decerr_low=A, +hbm_decerr_high=A   the same with DECERR
module hbm #(
    parameter PORTS = 1,        // AXI ports; of each signal, port 0 has the lowest bits
    parameter PORTS_EACH = 1,   // of a core
    parameter BYTES = 64,       // of a beat; a power of two, at least 4
    parameter ID_BITS = 1,
    parameter DEPTH = 1 << 20   // beats that the memory holds
) (
    input  wire                     clk, rst, dump,
    input  wire [PORTS-1:0]         awvalid, wvalid, wlast, bready, arvalid, rready,
    input  wire [PORTS*ID_BITS-1:0] awid, arid,
    input  wire [PORTS*40-1:0]      awaddr, araddr,
    input  wire [PORTS*8-1:0]       awlen, arlen,
    input  wire [PORTS*8*BYTES-1:0] wdata,
    input  wire [PORTS*BYTES-1:0]   wstrb,
    output reg  [PORTS-1:0]         awready, wready, bvalid, arready, rvalid, rlast,
    output reg  [PORTS*ID_BITS-1:0] bid, rid,
    output reg  [PORTS*2-1:0]       bresp, rresp,
    output wire [PORTS*8*BYTES-1:0] rdata
);
    localparam WIDTH = 8 * BYTES;
    localparam SHIFT = $clog2(BYTES);
    // Places of a port's rings; powers of two. What does not fit waits outside.
    localparam BURSTS = 64;     // addresses of reads, responses of writes
    localparam AW_BURSTS = 512; // addresses of writes
    // Written beats, twice as many as the cycles of the longest latency. A short latency uses only the first SHORT, which
    // stay in the host's cache. Many ports get no more than SHORT: writes then stall where the latency exceeds it.
    localparam SHORT = 256;
    localparam BEATS = PORTS > 16 ? SHORT : 4096;
    localparam SPARE = 2 * PORTS * BURSTS;  // of the rings whose items overtake each other: the one that does
    localparam COST = 256 * BYTES;
    localparam [1:0] OKAY = 0, SLVERR = 2, DECERR = 3;

    reg [WIDTH-1:0] memory [0:DEPTH-1];

    reg [8*1024-1:0] path;
    reg [39:0] size, room, base, slverr_low, slverr_high, decerr_low, decerr_high;  // the limits in beats
    reg [31:0] seed;
    reg [63:0] latency, gap;
    reg [31:0] held;  // written beats that the memory holds
    integer beats, out_beats, port_rate, rate, stall, reorder, interleave, file, got, i;

    initial begin
        if (!$value$plusargs("hbm_size=%d", size)) size = DEPTH * BYTES;
        if (!$value$plusargs("hbm_room=%d", room)) room = 0;
        if (!$value$plusargs("hbm_base=%d", base)) base = 0;
        if (!$value$plusargs("hbm_beats=%d", beats)) beats = 0;
        if (!$value$plusargs("hbm_out_beats=%d", out_beats)) out_beats = 0;
        `HBM_ARGUMENTS
        if (size > DEPTH * BYTES || beats > DEPTH || out_beats > DEPTH) $fatal(1, "hbm: DEPTH is too small");
        if (^{size, room, base, beats, out_beats, latency, gap, port_rate, rate, stall, reorder, interleave, seed,
              slverr_low, slverr_high, decerr_low, decerr_high} === 1'bx) $fatal(1, "hbm: a plusarg is not a number");
        if (latency < 1) $fatal(1, "hbm: +hbm_latency must be at least 1");
        held = latency > SHORT / 2 ? BEATS : SHORT;
        size = size >> SHIFT;
        slverr_low = slverr_low >> SHIFT;
        slverr_high = slverr_high >> SHIFT;
        decerr_low = decerr_low >> SHIFT;
        decerr_high = decerr_high >> SHIFT;
        for (i = beats; i < size[31:0]; i = i + 1) memory[i] = 0;
        if (beats > 0) begin
            file = 0;
            if ($value$plusargs("hbm=%s", path)) file = $fopen(path, "rb");
            if (file == 0) $fatal(1, "hbm: cannot open the file of +hbm");
            got = $fread(memory, file, 0, beats);
            if (got != beats * BYTES) $fatal(1, "hbm: the file of +hbm is too short");
            $fclose(file);
        end
    end

    // What is to be delivered, in that order: in a ring of each port bursts to read, with their next beat and how many more
    // follow it; behind those, in another ring of each port, responses to writes.
    reg [39:0]        r_beat [0:SPARE];
    reg [7:0]         r_left [0:SPARE];
    reg [ID_BITS-1:0] r_id [0:SPARE];
    reg [63:0]        r_due [0:SPARE];
    reg [1:0]         b_resp [0:SPARE];
    reg [31:0]        r_first [0:2*PORTS-1], r_count [0:2*PORTS-1];
    reg [PORTS-1:0]   r_begun;
    reg [63:0]        r_rest [0:PORTS-1];
    // Bursts to write: the next beat of the first, the first beats of the others.
    reg [39:0]        aw_beat [0:PORTS*AW_BURSTS-1];
    reg [ID_BITS-1:0] aw_id [0:PORTS*AW_BURSTS-1];
    reg [31:0]        aw_first [0:PORTS-1], aw_count [0:PORTS-1];
    // Beats to write.
    reg [WIDTH-1:0]   w_data [0:PORTS*BEATS-1];
    reg [BYTES-1:0]   w_strb [0:PORTS*BEATS-1];
    reg               w_last [0:PORTS*BEATS-1];
    reg [63:0]        w_due [0:PORTS*BEATS-1];
    reg [31:0]        w_first [0:PORTS-1], w_count [0:PORTS-1];
    reg [1:0]         w_resp [0:PORTS-1];  // the worst so far of the burst
    reg [63:0]        w_rest [0:PORTS-1];

    reg [WIDTH-1:0]   r_data [0:PORTS-1];
    genvar g;
    generate
        for (g = 0; g < PORTS; g = g + 1) begin : data
            assign rdata[g*WIDTH +: WIDTH] = r_data[g];
        end
    endgenerate

    reg [63:0]      now;
    reg [63:0]      noise [0:PORTS-1];
    integer         credit, port_credit [0:PORTS-1];  // what may still be moved, in 256ths of a byte
    reg [PORTS-1:0] writes_first;
    integer         turn, p, k;

    function [1:0] response(input [39:0] beat);
        if (beat >= size || (beat >= decerr_low && beat < decerr_high)) response = DECERR;
        else if (beat >= slverr_low && beat < slverr_high) response = SLVERR;
        else response = OKAY;
    endfunction

    function affordable(input integer port);
        affordable = (port_rate == 0 || port_credit[port] >= COST) && (rate == 0 || credit >= COST);
    endfunction

    task pay(input integer port);
        begin
            if (port_rate != 0) port_credit[port] = port_credit[port] - COST;
            if (rate != 0) credit = credit - COST;
        end
    endtask

    // The place in the memory of an address of a port.
    function [39:0] beat_of(input integer port, input [39:0] address);
        reg [39:0] core, offset, place;
        begin
            core = {8'd0, port / PORTS_EACH};
            offset = address - base;
            place = room == 0 ? offset : offset < room ? room * core + offset : 40'hffffff0000;
            beat_of = place >> SHIFT;
        end
    endfunction

    // The place of an item in a ring: that of a port, or, behind all of those, that of its responses to writes.
    function integer at(input integer ring, input [31:0] item);
        at = ring * BURSTS + item % BURSTS;
    endfunction

    task move(input integer to, input integer from);
        begin
            r_beat[to] = r_beat[from];
            r_left[to] = r_left[from];
            r_id[to] = r_id[from];
            r_due[to] = r_due[from];
            b_resp[to] = b_resp[from];
        end
    endtask

    // Lets an item overtake those before it; or not, if it is not due, or one of them has its ID.
    task overtake(input integer ring, input integer distance);
        integer n;
        reg     may;
        begin
            move(SPARE, at(ring, r_first[ring] + distance));
            may = distance < r_count[ring] && r_due[SPARE] <= now;
            for (n = 0; n < distance; n = n + 1) if (r_id[at(ring, r_first[ring] + n)] == r_id[SPARE]) may = 0;
            if (may) begin
                for (n = distance; n > 0; n = n - 1) move(at(ring, r_first[ring] + n), at(ring, r_first[ring] + n - 1));
                move(at(ring, r_first[ring]), SPARE);
            end
        end
    endtask

    // Delivers a beat if one is due.
    task serve_read(input integer port);
        integer place;
        reg [39:0] beat;
        if ((!rvalid[port] || rready[port]) && r_count[port] != 0 && now >= r_rest[port]) begin
            if (reorder != 0 && (interleave != 0 || !r_begun[port]) && {24'd0, noise[port][47:40]} < reorder)
                overtake(port, {29'd0, noise[port][50:48]});
            place = port * BURSTS + r_first[port];
            if (now >= r_due[place] && affordable(port) && (stall == 0 || {24'd0, noise[port][31:24]} >= stall)) begin
                pay(port);
                beat = r_beat[place];
                rvalid[port] <= 1;
                rid[port*ID_BITS +: ID_BITS] <= r_id[place];
                rresp[port*2 +: 2] <= response(beat);
                rlast[port] <= r_left[place] == 0;
                r_data[port] <= response(beat) == OKAY ? memory[beat[$clog2(DEPTH)-1:0]] : {BYTES{8'hee}};
                if (r_left[place] == 0) begin
                    r_first[port] = (r_first[port] + 1) % BURSTS;
                    r_count[port] = r_count[port] - 1;
                    r_rest[port] = now + 1 + gap;
                    r_begun[port] = 0;
                end else begin
                    r_beat[place] = beat + 1;
                    r_left[place] = r_left[place] - 1;
                    r_begun[port] = 1;
                end
                writes_first[port] = 1;
            end
        end
    endtask

    // Stores a beat if one is due; the last of a burst makes its response.
    task serve_write(input integer port);
        integer place, burst, answer, n;
        reg [39:0] beat;
        reg [31:0] bits;
        reg [1:0] resp;
        if (aw_count[port] != 0 && w_count[port] != 0 && now >= w_rest[port] && r_count[PORTS+port] < BURSTS) begin
            place = port * BEATS + w_first[port];
            burst = port * AW_BURSTS + aw_first[port];
            if (now >= w_due[place] && affordable(port)) begin
                pay(port);
                beat = aw_beat[burst];
                resp = response(beat);
                if (resp != OKAY) begin
                    if (resp > w_resp[port]) w_resp[port] = resp;
                end else if (&w_strb[place]) memory[beat[$clog2(DEPTH)-1:0]] = w_data[place];
                else for (n = 0; n < BYTES / 4; n = n + 1) if (|w_strb[place][4*n +: 4]) begin
                    bits = {{8{w_strb[place][4*n+3]}}, {8{w_strb[place][4*n+2]}},
                            {8{w_strb[place][4*n+1]}}, {8{w_strb[place][4*n]}}};
                    memory[beat[$clog2(DEPTH)-1:0]][32*n +: 32] =
                        memory[beat[$clog2(DEPTH)-1:0]][32*n +: 32] & ~bits | w_data[place][32*n +: 32] & bits;
                end
                aw_beat[burst] = beat + 1;
                if (w_last[place]) begin
                    answer = at(PORTS + port, r_first[PORTS+port] + r_count[PORTS+port]);
                    r_id[answer] = aw_id[burst];
                    r_due[answer] = now;
                    b_resp[answer] = w_resp[port];
                    r_count[PORTS+port] = r_count[PORTS+port] + 1;
                    w_resp[port] = OKAY;
                    aw_first[port] = (aw_first[port] + 1) % AW_BURSTS;
                    aw_count[port] = aw_count[port] - 1;
                    w_rest[port] = now + 1 + gap;
                end
                w_first[port] = (w_first[port] + 1) & (held - 1);
                w_count[port] = w_count[port] - 1;
                writes_first[port] = 0;
            end
        end
    endtask

    // Delivers a response to a write. Those that may be reordered wait at times, so that there is a choice.
    task serve_response(input integer port);
        integer ring;
        begin
            ring = PORTS + port;
            if ((!bvalid[port] || bready[port]) && r_count[ring] != 0
                && (stall == 0 || {24'd0, noise[port][39:32]} >= stall)
                && (reorder == 0 || {24'd0, noise[port][58:51]} >= reorder)) begin
                if (reorder != 0) overtake(ring, {29'd0, noise[port][61:59]});
                bvalid[port] <= 1;
                bid[port*ID_BITS +: ID_BITS] <= r_id[at(ring, r_first[ring])];
                bresp[port*2 +: 2] <= b_resp[at(ring, r_first[ring])];
                r_first[ring] = (r_first[ring] + 1) % BURSTS;
                r_count[ring] = r_count[ring] - 1;
            end
        end
    endtask

    task accept(input integer port);
        integer place;
        begin
            if (arvalid[port] && arready[port]) begin
                place = at(port, r_first[port] + r_count[port]);
                r_beat[place] = beat_of(port, araddr[port*40 +: 40]);
                r_left[place] = arlen[port*8 +: 8];
                r_id[place] = arid[port*ID_BITS +: ID_BITS];
                r_due[place] = now + latency - 1;
                r_count[port] = r_count[port] + 1;
            end
            if (awvalid[port] && awready[port]) begin
                place = port * AW_BURSTS + (aw_first[port] + aw_count[port]) % AW_BURSTS;
                aw_beat[place] = beat_of(port, awaddr[port*40 +: 40]);
                aw_id[place] = awid[port*ID_BITS +: ID_BITS];
                aw_count[port] = aw_count[port] + 1;
            end
            if (wvalid[port] && wready[port]) begin
                place = port * BEATS + ((w_first[port] + w_count[port]) & (held - 1));
                w_data[place] = wdata[port*WIDTH +: WIDTH];
                w_strb[place] = wstrb[port*BYTES +: BYTES];
                w_last[place] = wlast[port];
                w_due[place] = now + latency - 1;
                w_count[port] = w_count[port] + 1;
            end
        end
    endtask

    always @(posedge clk) begin
        if (rst) begin
            now = 0;
            turn = 0;
            credit = 0;
            /* verilator unroll_disable */
            for (p = 0; p < PORTS; p = p + 1) begin
                {r_first[p], r_count[p], r_first[PORTS+p], r_count[PORTS+p], r_begun[p], r_rest[p]} = 0;
                {aw_first[p], aw_count[p], w_first[p], w_count[p], w_resp[p], w_rest[p]} = 0;
                {port_credit[p], writes_first[p]} = 0;
                noise[p] = {seed * 32'h9e3779b1 + 32'd1, p};  // never 0
            end
            {arready, awready, wready, rvalid, bvalid} <= 0;
        end else begin
            now = now + 1;
            if (rate != 0) begin
                turn = (turn + 1) % PORTS;
                credit = credit > COST ? COST + rate : credit + rate;
            end
            /* verilator unroll_disable */
            for (k = 0; k < PORTS; k = k + 1) begin
                p = (k + turn) % PORTS;
                if (stall != 0 || reorder != 0) begin
                    noise[p] = noise[p] ^ (noise[p] << 13);
                    noise[p] = noise[p] ^ (noise[p] >> 7);
                    noise[p] = noise[p] ^ (noise[p] << 17);
                end
                if (port_rate != 0)
                    port_credit[p] = port_credit[p] > COST ? COST + port_rate : port_credit[p] + port_rate;
                accept(p);
                if (rready[p]) rvalid[p] <= 0;
                if (bready[p]) bvalid[p] <= 0;
                if (writes_first[p]) begin
                    serve_write(p);
                    serve_read(p);
                end else begin
                    serve_read(p);
                    serve_write(p);
                end
                serve_response(p);
                arready[p] <= r_count[p] < BURSTS && (stall == 0 || {24'd0, noise[p][23:16]} >= stall);
                awready[p] <= aw_count[p] < AW_BURSTS && (stall == 0 || {24'd0, noise[p][7:0]} >= stall);
                wready[p] <= w_count[p] < held && (stall == 0 || {24'd0, noise[p][15:8]} >= stall);
            end
        end
        if (dump) begin
            file = 0;
            if ($value$plusargs("hbm_out=%s", path)) file = $fopen(path, "wb");
            if (file == 0) $fatal(1, "hbm: cannot open the file of +hbm_out");
            for (i = 0; i < out_beats; i = i + 1) $fwrite(file, "%u", memory[i]);
            $fclose(file);
        end
    end
endmodule
