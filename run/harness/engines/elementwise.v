// Runs programs on the vector engine, the scalar engine, or both, without the simulator ever waiting for Python. The
// engines share a model of SBUF and one of PSUM, in which every port has its own way: two requests never meet. Of two of
// anything, 0 is the vector engine's and 1 the scalar engine's.
//
// Defined by run/harness/engines/elementwise.py: `PORT_WIRES (two of each of an engine's ports, with _ in place of __), `INSTANCES (the
// engines; zeros in place of one that is not there), `PARTITIONS, `COLUMNS, `INSTRUCTION (bits), `PROGRAM_DEPTH,
// `SBUF_DEPTH and `PSUM_DEPTH (words of a partition).
//
// Plusargs (`ARGUMENTS): +records: both programs, the first +vector_count records the vector engine's, a hexadecimal
// file of +records_count lines; +sbuf, +psum: words of all partitions from address 0, binary files of +<name>_count
// words, most significant byte first. +sbuf_out, +psum_out: files for the same words at the end; +events: file for a
// line "a|r engine cycle" whenever an engine takes an instruction (a) or retires one (r), left out if not wanted;
// +limit: cycles after which the run is given up; +stall=P, +seed=S: every stream and port pauses in P of 256 cycles at
// random; +recover=1: an engine that has come to rest at an error writes "e engine cycle cause number" to the events,
// is reset, and goes on behind the refused instruction.
//
// A record of a program is {vector instructions that must have retired, those of the scalar engine, instruction}. `done`
// rises when both programs have retired or come to rest at an error, or at the limit (`timeout`). A memory access beyond
// the words of its file, or a write to partitions that do not exist, raises `stray`.
module elementwise (
    input  wire clk,
    output reg  done, timeout, stray,
    output reg  [47:0] cycles,
    output reg  [63:0] accepted, retirements,
    output wire [2*`ERROR-1:0]    errors,
    output wire [2*`COUNTERS-1:0] counts
);
    localparam RECORD = 64 + `INSTRUCTION;
    localparam SBUF_BITS = 32 * `PARTITIONS;
    localparam PSUM_BITS = 32 * `COLUMNS;
    // What a memory puts out when it was not asked: nobody may rely on the data of an earlier request.
    localparam NOTHING = 32'h7fa5c35a;
    // Cycles in which nothing happens before a run is over, so that whatever comes late is seen.
    localparam REST = 16;

    reg [RECORD-1:0]    records [0:2*`PROGRAM_DEPTH-1];
    reg [SBUF_BITS-1:0] sbuf [0:`SBUF_DEPTH-1];
    reg [PSUM_BITS-1:0] psum [0:`PSUM_DEPTH-1];

    reg [8*1024-1:0] path;
    reg [31:0] noise [0:1];
    integer records_count, vector_count, sbuf_count, psum_count, limit, stall, seed, recover, events, file, word;

    initial begin
        {done, timeout, stray, cycles} = 0;
        `ARGUMENTS
        events = 0;
        if ($value$plusargs("events=%s", path)) begin
            events = $fopen(path, "w");
            if (events == 0) $fatal(1, "cannot open the file of events");
        end
        // Two independent generators decide who pauses, a byte each for four streams; neither may start at 0.
        noise[0] = seed * 32'h9e3779b1 + 32'd1;
        noise[1] = seed * 32'h85ebca77 + 32'd2;
    end

    reg [3:0] reset = 4'hf;
    wire rst = reset[0];
    always @(posedge clk) reset <= reset >> 1;

    `PORT_WIRES
    reg  [SBUF_BITS-1:0] sbuf_read [0:1], sbuf_late [0:1];
    reg  [PSUM_BITS-1:0] psum_read [0:1], psum_late [0:1];
    wire [SBUF_BITS-1:0] sbuf_data [0:1];
    wire [PSUM_BITS-1:0] psum_data [0:1];
    reg  [47:0]          elapsed;
    reg  [1:0]           restart;
    wire [1:0]           awake, resting;
    assign errors = {error[1], error[0]};
    assign counts = {counters[1], counters[0]};

    genvar e, stream;
    generate
        for (e = 0; e < 2; e = e + 1) begin : engines
            // Streams of an engine: 0 instructions, 1 reads of SBUF, 2 reads of PSUM, 3 writes.
            wire [3:0] pause;
            for (stream = 0; stream < 4; stream = stream + 1) begin : pauses
                assign pause[stream] = {24'd0, noise[e][8*stream +: 8]} < stall;
            end
            assign {write_ready[e], psum_ready[e], sbuf_ready[e]} = ~pause[3:1];
            assign sbuf_data[e] = `READ_LATENCY == 1 ? sbuf_read[e] : sbuf_late[e];
            assign psum_data[e] = `READ_LATENCY == 1 ? psum_read[e] : psum_late[e];
            always @(posedge clk) if (stall != 0) noise[e] <= xorshift(noise[e]);

            // A record is offered once what it waits for has retired, and then stays.
            reg               offered;
            wire [31:0]       next = accepted[32*e +: 32];
            wire [RECORD-1:0] record = records[(e ? vector_count : 0) + next];
            wire              allowed = next < (e ? records_count - vector_count : vector_count)
                                        && retirements[31:0] >= record[RECORD-1:32+`INSTRUCTION]
                                        && retirements[63:32] >= record[31+`INSTRUCTION:`INSTRUCTION];
            assign instructions_payload[e] = record[`INSTRUCTION-1:0];
            assign instructions_valid[e] = !rst && allowed && (offered || !pause[0]);

            // An instruction that waits for what an error prevents, or that is offered to an engine with an error, never
            // comes.
            reg  [31:0] rest;
            wire        failed = error[e][`ERROR_VALID];
            wire        quiet = !busy[e] && !write_valid[e] && !retired[e];
            assign awake[e] = instructions_valid[e] || !quiet;
            assign resting[e] = quiet && (recover != 0 ? !allowed && !failed : !allowed || failed);
            always @(posedge clk)
                if (rst) begin
                    accepted[32*e +: 32] <= 0;
                    retirements[32*e +: 32] <= 0;
                    {offered, rest, restart[e]} <= 0;
                end else if (!done) begin
                    offered <= instructions_valid[e] && !instructions_ready[e];
                    if (instructions_valid[e] && instructions_ready[e]) begin
                        accepted[32*e +: 32] <= next + 1;
                        if (events != 0) $fwrite(events, "a %0d %0d\n", e, elapsed);
                    end
                    retirements[32*e +: 32] <= retirements[32*e +: 32] + {31'd0, retired[e]};
                    if (events != 0 && retired[e]) $fwrite(events, "r %0d %0d\n", e, elapsed);
                    restart[e] <= rest == REST;
                    rest <= recover != 0 && failed && quiet && !restart[e] && rest != REST ? rest + 1 : 0;
                    if (rest == REST)
                        $fwrite(events, "e %0d %0d %0d %0d\n", e, elapsed, error[e][`ERROR_CAUSE],
                                error[e][`ERROR_NUMBER]);
                end
        end
    endgenerate
    `INSTANCES

    task write(
        input                   storage,
        input [15:0]            address,
        input [`PARTITIONS-1:0] enable,
        input [3:0]             mask,
        input [SBUF_BITS-1:0]   data
    );
        reg [31:0] bits;
        integer    p;
        begin
            bits = {{8{mask[3]}}, {8{mask[2]}}, {8{mask[1]}}, {8{mask[0]}}};
            if ({16'd0, address} >= (storage ? psum_count : sbuf_count)) stray = 1;
            else if (storage) begin
                for (p = 0; p < `COLUMNS; p = p + 1)
                    if (enable[p])
                        psum[address[11:0]][32*p +: 32] = psum[address[11:0]][32*p +: 32] & ~bits | data[32*p +: 32] & bits;
                for (p = `COLUMNS; p < `PARTITIONS; p = p + 1) if (enable[p]) stray = 1;
            end else begin
                for (p = 0; p < `PARTITIONS; p = p + 1)
                    if (enable[p])
                        sbuf[address][32*p +: 32] = sbuf[address][32*p +: 32] & ~bits | data[32*p +: 32] & bits;
            end
        end
    endtask

    // What is read in a cycle was written in an earlier one: all reads come before the writes.
    integer n;
    always @(posedge clk) begin
        for (n = 0; n < 2; n = n + 1) begin
            sbuf_late[n] <= sbuf_read[n];
            psum_late[n] <= psum_read[n];
            sbuf_read[n] <= {`PARTITIONS{NOTHING}};
            psum_read[n] <= {`COLUMNS{NOTHING}};
            if (sbuf_valid[n] && sbuf_ready[n]) begin
                if ({16'd0, sbuf_address[n][17:2]} < sbuf_count) sbuf_read[n] <= sbuf[sbuf_address[n][17:2]];
                else stray = 1;
            end
            if (psum_valid[n] && psum_ready[n]) begin
                if ({16'd0, psum_address[n][17:2]} < psum_count) psum_read[n] <= psum[psum_address[n][13:2]];
                else stray = 1;
            end
        end
        for (n = 0; n < 2; n = n + 1)
            if (write_valid[n] && write_ready[n])
                write(write_storage[n], write_address[n][17:2], write_enable[n], write_mask[n], write_data[n]);
    end

    // The clock of the result runs from the first instruction offered to the last one retired.
    reg [47:0] started;
    reg [31:0] rest;
    reg        running;
    always @(posedge clk)
        if (rst) {elapsed, started, rest, running} <= 0;
        else if (!done) begin
            elapsed <= elapsed + 1;
            if (awake != 0 && !running) begin
                running <= 1;
                started <= elapsed;
            end
            if (retired[0] || retired[1]) cycles <= elapsed - (running ? started : elapsed) + 1;
            rest <= &resting ? rest + 1 : 0;
            if (rest == REST || elapsed == {16'd0, limit}) begin
                timeout <= rest != REST;
                done <= 1;
                if (events != 0) $fclose(events);
                if ($value$plusargs("sbuf_out=%s", path)) begin
                    file = $fopen(path, "w");
                    for (word = 0; word < sbuf_count; word = word + 1) $fwrite(file, "%h\n", sbuf[word]);
                    $fclose(file);
                end
                if ($value$plusargs("psum_out=%s", path)) begin
                    file = $fopen(path, "w");
                    for (word = 0; word < psum_count; word = word + 1) $fwrite(file, "%h\n", psum[word]);
                    $fclose(file);
                end
            end
        end
endmodule
