// A DMA engine between a model of the on-chip memories' line ports and one of HBM, without the simulator ever waiting for
// Python.
//
// Defined by machine.py: `SIZE (bytes of a beat), `INSTRUCTION (bits), `PARTITIONS, `COLUMNS, `SBUF_LINES and
// `PSUM_LINES (of a partition), `HBM_LINES, `PROGRAM_DEPTH.
//
// Plusargs: +program, +program_count, +sbuf, +psum, +hbm: hexadecimal files; +sbuf_out, +psum_out, +hbm_out: the
// memories at the end; +events: a line "a|r cycle" for an instruction that is taken or retired, "e cycle cause number
// detail" for an error, after which the engine is reset and goes on behind the failed copy; +base: address of HBM's
// first byte, all others answer with an error, as do those from +bad_low up to +bad_high; +latency: of HBM, in cycles;
// +stall: every handshake pauses in so many of 256 cycles; +noise: seed; +limit: cycles after which a run is given up.
module machine (
    input  wire         clk,
    output reg          done,
    output reg          timeout,
    output reg  [7:0]   stray,
    output wire [`COUNTERS-1:0] counters
);
    localparam BITS = 8 * `SIZE;
    localparam PLACE = $clog2(`SIZE);
    localparam PENDING = 256;

    reg [`INSTRUCTION-1:0] program_ [0:`PROGRAM_DEPTH-1];
    reg [BITS-1:0]         sbuf [0:`PARTITIONS*`SBUF_LINES-1];
    reg [BITS-1:0]         psum [0:`COLUMNS*`PSUM_LINES-1];
    reg [BITS-1:0]         hbm [0:`HBM_LINES-1];
    reg [63:0]             cycles;
    reg [8*1024-1:0]       path;
    reg [39:0]             base, bad_low, bad_high;
    integer                count, limit, stall, latency, seed, events, i;

    initial begin
        done = 0;
        timeout = 0;
        stray = 0;
        cycles = 0;
        if (!$value$plusargs("limit=%d", limit)) $fatal(1, "+limit is missing");
        if (!$value$plusargs("program_count=%d", count)) $fatal(1, "+program_count is missing");
        if ($value$plusargs("program=%s", path)) $readmemh(path, program_, 0, count - 1);
        if ($value$plusargs("sbuf=%s", path)) $readmemh(path, sbuf);
        if ($value$plusargs("psum=%s", path)) $readmemh(path, psum);
        if ($value$plusargs("hbm=%s", path)) $readmemh(path, hbm);
        events = 0;
        if ($value$plusargs("events=%s", path)) events = $fopen(path, "w");
        if (events == 0) $fatal(1, "cannot open the file of events");
        if (!$value$plusargs("base=%d", base)) base = 0;
        if (!$value$plusargs("bad_low=%d", bad_low)) bad_low = 0;
        if (!$value$plusargs("bad_high=%d", bad_high)) bad_high = 0;
        if (!$value$plusargs("latency=%d", latency)) latency = 50;
        if (!$value$plusargs("stall=%d", stall)) stall = 0;
        if (!$value$plusargs("noise=%d", seed)) seed = 1;
        noise = {32'h9e3779b1 * seed, 32'h85ebca77 + seed};
    end

    // A pause for each handshake: a byte of a 64-bit xorshift.
    reg [63:0] noise, shifted0, shifted1;
    always @* begin
        shifted0 = noise ^ (noise << 13);
        shifted1 = shifted0 ^ (shifted0 >> 7);
    end
    always @(posedge clk) noise <= shifted1 ^ (shifted1 << 17);
    wire [7:0] pause;
    genvar g;
    generate
        for (g = 0; g < 8; g = g + 1) begin : pauses
            assign pause[g] = {24'b0, noise[8*g+:8]} < stall;
        end
    endgenerate

    // The engine, and the program that it is given.
    reg  [3:0]  starting = 4'hf;
    reg  [9:0]  resting = 0;
    wire        rst = starting != 0;
    reg  [31:0] next = 0, first = 0, retirements = 0;
    wire        taken, ready, retired, busy;
    wire [`ERROR-1:0] error;
    wire        offered = !pause[0] && next < count && !rst;
    assign taken = offered && ready;

    wire                 read_valid, write_valid, read_storage, write_storage;
    wire [9:0]           read_partition, write_partition;
    wire [17:0]          read_address, write_address;
    wire [3:0]           read_word;
    wire [BITS-1:0]      write_data, wdata;
    wire [`SIZE-1:0]     write_mask, wstrb;
    wire                 arvalid, awvalid, wvalid, wlast, rready, bready;
    wire [39:0]          araddr, awaddr;
    wire [7:0]           arlen, awlen;
    reg                  rvalid = 0, bvalid = 0, rlast;
    reg  [1:0]           rresp, bresp;
    reg  [BITS-1:0]      rdata, read_first, read_second;
    wire                 read_ready = !pause[1], write_ready = !pause[2];
    wire                 arready = !pause[3] && ar_in - ar_out < PENDING;
    wire                 awready = !pause[4] && aw_in - aw_done < PENDING;
    wire                 wready = !pause[5] && aw_in != aw_out;

    dma_engine engine (
        .clk(clk), .rst(rst),
        .instructions__payload(program_[next]), .instructions__valid(offered), .instructions__ready(ready),
        .read__valid(read_valid), .read__storage(read_storage), .read__partition(read_partition),
        .read__address(read_address), .read__word(read_word), .read__ready(read_ready), .read__data(read_second),
        .write__valid(write_valid), .write__storage(write_storage), .write__partition(write_partition),
        .write__address(write_address), .write__data(write_data), .write__mask(write_mask),
        .write__ready(write_ready),
        .axi__arvalid(arvalid), .axi__arready(arready), .axi__arid(), .axi__araddr(araddr), .axi__arlen(arlen),
        .axi__awvalid(awvalid), .axi__awready(awready), .axi__awid(), .axi__awaddr(awaddr), .axi__awlen(awlen),
        .axi__wvalid(wvalid), .axi__wready(wready), .axi__wdata(wdata), .axi__wstrb(wstrb), .axi__wlast(wlast),
        .axi__bvalid(bvalid), .axi__bready(bready), .axi__bid(1'b0), .axi__bresp(bresp),
        .axi__rvalid(rvalid), .axi__rready(rready), .axi__rid(1'b0), .axi__rdata(rdata), .axi__rresp(rresp),
        .axi__rlast(rlast),
        .retired(retired), .error(error), .busy(busy), .active(), .counters(counters)
    );

    always @(posedge clk) begin
        cycles <= cycles + 1;
        if (starting != 0) starting <= starting - 1;
        if (taken) begin
            next <= next + 1;
            $fwrite(events, "a %0d\n", cycles);
        end
        if (retired) begin
            retirements <= retirements + 1;
            $fwrite(events, "r %0d\n", cycles);
        end
        // After an error: rest until HBM has nothing more to say, then go on.
        if (error[`ERROR_VALID] && !rst) begin
            resting <= resting + 1;
            if (taken || retired || busy) stray <= 1;
            if (&resting) begin
                $fwrite(events, "e %0d %0d %0d %0d\n", cycles, error[`ERROR_CAUSE], error[`ERROR_NUMBER],
                    error[`ERROR_DETAIL]);
                next <= first + error[`ERROR_NUMBER] + 1;
                first <= first + error[`ERROR_NUMBER] + 1;
                retirements <= first + error[`ERROR_NUMBER] + 1;
                starting <= 4'hf;
                if (ar_in != ar_out || rvalid || aw_in != aw_done || bvalid) stray <= 2;
            end
        end
        if (!done && !rst && !busy && !error[`ERROR_VALID] && retirements == count && cycles > 20) finish();
        if (!done && cycles == {32'b0, limit}) begin
            timeout <= 1;
            finish();
        end
    end

    task finish;
        begin
            if ($value$plusargs("sbuf_out=%s", path)) $writememh(path, sbuf);
            if ($value$plusargs("psum_out=%s", path)) $writememh(path, psum);
            if ($value$plusargs("hbm_out=%s", path)) $writememh(path, hbm);
            $fclose(events);
            done <= 1;
        end
    endtask

    function [BITS-1:0] merged(input [BITS-1:0] old, input [BITS-1:0] new_, input [`SIZE-1:0] mask);
        for (i = 0; i < `SIZE; i = i + 1) merged[8*i+:8] = mask[i] ? new_[8*i+:8] : old[8*i+:8];
    endfunction

    // The line ports. Data that nobody asked for is noise, and so is what lies beside a word of PSUM.
    wire [BITS-1:0] noises = {(BITS / 64){noise}};
    wire [31:0]     read_line = read_storage ? read_partition * `PSUM_LINES + (read_address >> PLACE)
                                             : read_partition * `SBUF_LINES + (read_address >> PLACE);
    wire [31:0]     write_line = write_storage ? write_partition * `PSUM_LINES + (write_address >> PLACE)
                                               : write_partition * `SBUF_LINES + (write_address >> PLACE);
    wire [`SIZE-1:0] read_bytes = {{(`SIZE - 4){1'b0}}, 4'hf} << (4 * read_word);
    wire [`SIZE-1:0] write_word = write_mask & -write_mask;
    wire [`SIZE-1:0] lowest = {{(`SIZE - 1){1'b0}}, 1'b1};
    reg  [`SIZE-1:0] word_bytes;
    always @* begin
        word_bytes = 0;
        for (i = 0; i < `SIZE; i = i + 4)
            if (|((write_word >> i) & (lowest | lowest << 1 | lowest << 2 | lowest << 3)))
                word_bytes = {{(`SIZE - 4){1'b0}}, 4'hf} << i;
    end
    always @(posedge clk) begin
        read_second <= read_first;
        read_first <= noises;
        if (read_valid && read_ready) begin
            if (read_storage) read_first <= merged(noises, psum[read_line], read_bytes);
            else read_first <= sbuf[read_line];
            if (read_address[PLACE-1:0] != 0) stray <= 3;
            if (read_partition >= (read_storage ? `COLUMNS : `PARTITIONS)) stray <= 4;
        end
        if (write_valid && write_ready && !rst) begin
            if (write_storage) psum[write_line] <= merged(psum[write_line], write_data, write_mask);
            else sbuf[write_line] <= merged(sbuf[write_line], write_data, write_mask);
            if (write_address[PLACE-1:0] != 0 || write_mask == 0) stray <= 5;
            if (write_storage && (write_mask & ~word_bytes) != 0) stray <= 6;
            if (write_partition >= (write_storage ? `COLUMNS : `PARTITIONS)) stray <= 7;
        end
    end

    // HBM: addresses with the time when they are answered at the earliest.
    reg [39:0] ar_address [0:PENDING-1], aw_address [0:PENDING-1];
    reg [7:0]  ar_len [0:PENDING-1], aw_len [0:PENDING-1];
    reg [63:0] ar_due [0:PENDING-1], b_due [0:PENDING-1];
    reg        b_bad [0:PENDING-1];
    reg [31:0] ar_in = 0, ar_out = 0, aw_in = 0, aw_out = 0, aw_done = 0;
    reg [7:0]  r_beat = 0, w_beat = 0;
    reg        w_bad = 0;

    wire [39:0] r_address = ar_address[ar_out[7:0]] + {25'b0, r_beat, {PLACE{1'b0}}} * 1;
    wire [39:0] w_address = aw_address[aw_out[7:0]] + {25'b0, w_beat, {PLACE{1'b0}}} * 1;
    function beyond(input [39:0] address);
        beyond = address < base || address - base >= `HBM_LINES * `SIZE || (address >= bad_low && address < bad_high);
    endfunction
    wire        r_turn = ar_in != ar_out && cycles >= ar_due[ar_out[7:0]] && !pause[6];
    wire        b_turn = aw_out != aw_done && cycles >= b_due[aw_done[7:0]] && !pause[7];
    wire [31:0] r_line = (r_address - base) >> PLACE;
    wire [31:0] w_line = (w_address - base) >> PLACE;

    always @(posedge clk) begin
        if (!rvalid || rready) begin
            rvalid <= r_turn;
            rdata <= beyond(r_address) ? noises : hbm[r_line];
            rresp <= beyond(r_address) ? 2 : 0;
            rlast <= r_beat == ar_len[ar_out[7:0]];
            if (r_turn) begin
                r_beat <= r_beat + 1;
                if (r_beat == ar_len[ar_out[7:0]]) begin
                    r_beat <= 0;
                    ar_out <= ar_out + 1;
                end
            end
        end
        if (arvalid && arready && !rst) begin
            ar_address[ar_in[7:0]] <= araddr;
            ar_len[ar_in[7:0]] <= arlen;
            ar_due[ar_in[7:0]] <= cycles + latency - 1;
            ar_in <= ar_in + 1;
        end
        if (awvalid && awready && !rst) begin
            aw_address[aw_in[7:0]] <= awaddr;
            aw_len[aw_in[7:0]] <= awlen;
            aw_in <= aw_in + 1;
        end
        if (wvalid && wready && !rst) begin
            if (!beyond(w_address)) hbm[w_line] <= merged(hbm[w_line], wdata, wstrb);
            w_beat <= wlast ? 0 : w_beat + 1;
            w_bad <= !wlast && (w_bad || beyond(w_address));
            if (wlast != (w_beat == aw_len[aw_out[7:0]]) || wstrb == 0) stray <= 8;
            if (wlast) begin
                b_bad[aw_out[7:0]] <= w_bad || beyond(w_address);
                b_due[aw_out[7:0]] <= cycles + latency;
                aw_out <= aw_out + 1;
            end
        end
        if (!bvalid || bready) begin
            bvalid <= b_turn;
            bresp <= b_bad[aw_done[7:0]] ? 2 : 0;
            if (b_turn) aw_done <= aw_done + 1;
        end
        // No burst crosses a page or starts beside a beat; room was there for what was asked for.
        if (arvalid && !rst && ((araddr ^ (araddr + ({32'b0, arlen} << PLACE))) >= 4096 || araddr[PLACE-1:0] != 0))
            stray <= 9;
        if (awvalid && !rst && ((awaddr ^ (awaddr + ({32'b0, awlen} << PLACE))) >= 4096 || awaddr[PLACE-1:0] != 0))
            stray <= 10;
        if (rvalid && !rready) stray <= 11;
    end

    // What was offered and not taken stays.
    localparam OFFERS = 5;
    wire [OFFERS-1:0] waits = {wvalid && !wready, awvalid && !awready, arvalid && !arready,
                               write_valid && !write_ready, read_valid && !read_ready};
    wire [OFFERS-1:0] valids = {wvalid, awvalid, arvalid, write_valid, read_valid};
    wire [BITS+`SIZE:0]    w_offer = {wlast, wstrb, wdata};
    wire [BITS+`SIZE+28:0] write_offer = {write_storage, write_partition, write_address, write_mask, write_data};
    wire [32:0]            read_offer = {read_storage, read_partition, read_address, read_word};
    reg [OFFERS-1:0]       waited = 0;
    reg [BITS+`SIZE:0]     w_before;
    reg [47:0]             ar_before, aw_before;
    reg [BITS+`SIZE+28:0]  write_before;
    reg [32:0]             read_before;
    always @(posedge clk) begin
        waited <= rst ? 0 : waits;
        w_before <= w_offer;
        aw_before <= {awaddr, awlen};
        ar_before <= {araddr, arlen};
        write_before <= write_offer;
        read_before <= read_offer;
        if (!rst && ((waited & ~valids) != 0 || (waited[4] && w_before != w_offer)
                     || (waited[3] && aw_before != {awaddr, awlen}) || (waited[2] && ar_before != {araddr, arlen})
                     || (waited[1] && write_before != write_offer) || (waited[0] && read_before != read_offer)))
            stray <= 12;
    end
endmodule
