// A DMA engine between a model of the on-chip memories' line ports and HBM (run/harness/hbm.v), without the simulator
// ever waiting for Python.
//
// Defined by machine.py: `SIZE (bytes of a beat), `INSTRUCTION (bits), `PARTITIONS, `COLUMNS, `SBUF_LINES and
// `PSUM_LINES (of a partition), `PROGRAM_DEPTH, `AXI_WIRES and `AXI of the engine, `HBM.
//
// Plusargs, besides those of run/harness/hbm.v: +program, +program_count, +sbuf, +psum: hexadecimal files; +sbuf_out,
// +psum_out: the memories at the end; +events: a line "a|r cycle" for an instruction that is taken or retired, "e cycle
// cause number detail" for an error, a while after which the engine is reset and goes on behind the failed copy;
// +stall: the other handshakes pause in so many of 256 cycles; +noise: seed; +limit: cycles after which a run is given
// up; +unwritten: cycles from a line that is taken to its being written.
module machine (
    input  wire         clk,
    output reg          done = 0,
    output wire [`COUNTERS-1:0] counters,
    output reg [223:0]   seen = 0
);
    localparam BITS = 8 * `SIZE;
    localparam PLACE = $clog2(`SIZE);
    localparam PSUM = `PARTITIONS * `SBUF_LINES;

    reg [`INSTRUCTION-1:0] program_ [0:`PROGRAM_DEPTH-1];
    reg [BITS-1:0]         chip [0:PSUM+`COLUMNS*`PSUM_LINES-1];  // SBUF, and behind it PSUM
    reg [63:0]             cycles = 0;
    reg [8*1024-1:0]       path;
    integer                count, limit, unwritten, events, i;

    initial begin
        if (!$value$plusargs("limit=%d", limit)) $fatal(1, "+limit is missing");
        if (!$value$plusargs("program_count=%d", count)) $fatal(1, "+program_count is missing");
        if (!$value$plusargs("unwritten=%d", unwritten)) unwritten = 0;
        if ($value$plusargs("program=%s", path)) $readmemh(path, program_, 0, count - 1);
        if ($value$plusargs("sbuf=%s", path)) $readmemh(path, chip, 0, PSUM - 1);
        if ($value$plusargs("psum=%s", path)) $readmemh(path, chip, PSUM);
        events = 0;
        if ($value$plusargs("events=%s", path)) events = $fopen(path, "w");
        if (events == 0) $fatal(1, "cannot open the file of events");
    end

    wire [7:0]  pause;
    wire [63:0] noise;
    pauses pausing (.clk(clk), .pause(pause), .noise(noise));

    // The engine, and the program that it is given.
    reg  [3:0]  starting = 4'hf;
    reg  [9:0]  resting = 0;
    wire        rst = starting != 0;
    reg  [31:0] next = 0, first = 0, retirements = 0;
    wire        taken, ready, retired, busy;
    wire [`ERROR-1:0] error;
    wire        offered = !pause[0] && next < count && !rst;
    assign taken = offered && ready;

    wire                 read__valid, write__valid, read__storage, write__storage;
    wire [9:0]           read__partition, write__partition;
    wire [17:0]          read__address, write__address;
    wire [3:0]           read__word;
    wire [BITS-1:0]      write__data;
    wire [`SIZE-1:0]     write__mask;
    reg  [BITS-1:0]      read_first, read_second, read_third;
    wire                 read__ready = !pause[1], write__ready = !pause[2];

    integer              left = 0;  // cycles until all lines are written
    wire                 written = left == 0 && !(write__valid && write__ready && unwritten != 0);
    always @(posedge clk) left <= write__valid && write__ready ? unwritten - (unwritten != 0) : left - (left != 0);

    `AXI_WIRES
    wire ends = !done && (cycles == {32'b0, limit}
                          || !rst && !busy && !error[`ERROR_VALID] && retirements == count && cycles > 20);
    wire dump = ends;
    `HBM
    always @(posedge clk) if (rvalid && !rready) $fatal(1, "there is no room for what was asked for");

    // Its clock stands still where it says that it may.
    reg  running = 1;
    wire active;
    wire gated = clk && running;
    always @(negedge clk) running <= active || rst;

    dma_engine engine (
        .clk(gated), .instructions__payload(program_[next]), .instructions__valid(offered),
        .instructions__ready(ready), `AXI, .read__data(`LINE_READ_LATENCY == 2 ? read_second : read_third), .*
    );

    // What the ports show of what the engine counts: cycles of 32 bits each.
    reg [31:0] owed = 0;  // beats that HBM has been asked for and has not brought
    always @(posedge clk) if (!rst) begin
        owed <= owed + (arvalid && arready ? arlen + 1 : 0) - {31'd0, rvalid && rready};
        seen[0+:32] <= seen[0+:32] + {31'd0, busy};
        seen[32+:32] <= seen[32+:32] + {31'd0, owed != 0 && !rvalid};
        seen[64+:32] <= seen[64+:32] + {31'd0, awvalid && !awready || wvalid && !wready};
        seen[96+:32] <= seen[96+:32] + {31'd0, read__valid && !read__ready};
        seen[128+:32] <= seen[128+:32] + {31'd0, write__valid && !write__ready};
        seen[160+:32] <= seen[160+:32] + {31'd0, arvalid && arready};
        seen[192+:32] <= seen[192+:32] + {31'd0, active};
    end

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
            if (taken || retired || busy) $fatal(1, "the engine goes on after an error");
            if (&resting) begin
                $fwrite(events, "e %0d %0d %0d %0d\n", cycles - {54'd0, resting}, error[`ERROR_CAUSE],
                    error[`ERROR_NUMBER], error[`ERROR_DETAIL]);
                next <= first + error[`ERROR_NUMBER] + 1;
                first <= first + error[`ERROR_NUMBER] + 1;
                retirements <= first + error[`ERROR_NUMBER] + 1;
                starting <= 4'hf;
                if (!idle) $fatal(1, "HBM has not answered, long after an error");
            end
        end
        if (ends) begin
            if (cycles == {32'b0, limit}) $fatal(1, "the engine did not finish: it waits for what does not come");
            if ($value$plusargs("sbuf_out=%s", path)) $writememh(path, chip, 0, PSUM - 1);
            if ($value$plusargs("psum_out=%s", path)) $writememh(path, chip, PSUM);
            $fclose(events);
            done <= 1;
        end
    end

    function [BITS-1:0] merged(input [BITS-1:0] old, input [BITS-1:0] new_, input [`SIZE-1:0] mask);
        for (i = 0; i < `SIZE; i = i + 1) merged[8*i+:8] = mask[i] ? new_[8*i+:8] : old[8*i+:8];
    endfunction

    function [31:0] line(input storage, input [9:0] partition, input [17:0] address);
        line = (storage ? PSUM + partition * `PSUM_LINES : partition * `SBUF_LINES) + (address >> PLACE);
    endfunction

    function [7:0] words(input [`SIZE-1:0] mask);
        begin
            words = 0;
            for (i = 0; i < `SIZE; i = i + 4) words = words + {7'd0, |mask[i+:4]};
        end
    endfunction

    // The line ports. Data that nobody asked for is noise, and so is what lies beside a word of PSUM.
    wire [BITS-1:0] noises = {(BITS / 64){noise}};
    wire [31:0]     read_line = line(read__storage, read__partition, read__address);
    wire [31:0]     write_line = line(write__storage, write__partition, write__address);
    wire [`SIZE-1:0] read_word_mask = {{(`SIZE - 4){1'b0}}, 4'hf} << (4 * read__word);
    wire [`SIZE-1:0] read_mask = read__storage ? read_word_mask : {`SIZE{1'b1}};
    always @(posedge clk) begin
        read_third <= read_second;
        read_second <= read_first;
        read_first <= noises;
        if (read__valid && read__ready) begin
            read_first <= merged(noises, chip[read_line], read_mask);
            if (read__address[PLACE-1:0] != 0) $fatal(1, "a line to read is misaligned");
            if (read__partition >= (read__storage ? `COLUMNS : `PARTITIONS)) $fatal(1, "nothing is there to be read");
        end
        if (write__valid && write__ready && !rst) begin
            chip[write_line] <= merged(chip[write_line], write__data, write__mask);
            if (write__address[PLACE-1:0] != 0 || write__mask == 0) $fatal(1, "a line to write is misaligned, or empty");
            if (write__storage && words(write__mask) > 1) $fatal(1, "two words of PSUM are written at once");
            if (write__partition >= (write__storage ? `COLUMNS : `PARTITIONS)) $fatal(1, "nothing is there to be written");
        end
    end

    axi_offer #("read", 33) reads (clk, rst, read__valid, read__ready,
        {read__storage, read__partition, read__address, read__word});
    axi_offer #("write", BITS + `SIZE + 29) writes (clk, rst, write__valid, write__ready,
        {write__storage, write__partition, write__address, write__mask, write__data});
endmodule
