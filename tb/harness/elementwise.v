// Runs programs on the vector engine, the scalar engine, or both, without the simulator ever waiting for Python. The
// engines share a model of SBUF and one of PSUM, in which every port has its own way: two requests never meet.
//
// Defined by tb/harness/elementwise.py: `VECTOR, `SCALAR (if the engine is there), `PARTITIONS, `COLUMNS, `INSTRUCTION (bits),
// `PROGRAM_DEPTH, `SBUF_DEPTH and `PSUM_DEPTH (words of a partition).
//
// Plusargs: +vector, +scalar: programs; +sbuf, +psum: words of all partitions from address 0; each a hexadecimal file
// of +<name>_count lines. +sbuf_out, +psum_out: files for the same words at the end; +events: file for a line
// "a|r engine cycle" whenever an engine takes an instruction (a) or retires one (r), left out if not wanted; +limit:
// cycles after which the run is given up; +stall=P, +noise=S: every stream and port pauses in P of 256 cycles at random;
// +recover=1: an engine that has come to rest at an error writes "e engine cycle cause number" to the events, is reset,
// and goes on behind the refused instruction.
//
// A record of a program is {vector instructions that must have retired, those of the scalar engine, instruction}. `done`
// rises when both programs have retired or come to rest at an error, or at the limit (`timeout`). A memory access beyond
// the words of its file, or a write to partitions that do not exist, raises `stray`.

// Offers the records of one program to its engine.
module feeder #(parameter SCALAR = 0) (
    input  wire                    clk,
    input  wire                    rst,
    input  wire                    pause,
    input  wire [31:0]             vector_retired,
    input  wire [31:0]             scalar_retired,
    output wire [`INSTRUCTION-1:0] payload,
    output wire                    valid,
    input  wire                    ready,
    output reg  [31:0]             accepted,
    output wire                    resting
);
    localparam RECORD = 64 + `INSTRUCTION;

    reg [RECORD-1:0] records [0:`PROGRAM_DEPTH-1];
    reg [8*1024-1:0] path;
    integer          count;

    initial begin
        count = 0;
        if (SCALAR != 0) begin
            if (!$value$plusargs("scalar_count=%d", count)) count = 0;
            if (count > 0 && $value$plusargs("scalar=%s", path)) $readmemh(path, records, 0, count - 1);
        end else begin
            if (!$value$plusargs("vector_count=%d", count)) count = 0;
            if (count > 0 && $value$plusargs("vector=%s", path)) $readmemh(path, records, 0, count - 1);
        end
    end

    // A record is offered once what it waits for has retired, and then stays.
    reg                offered;
    wire [RECORD-1:0]  record = records[accepted];
    wire               allowed = accepted < count && vector_retired >= record[RECORD-1:32+`INSTRUCTION]
                                 && scalar_retired >= record[31+`INSTRUCTION:`INSTRUCTION];
    assign payload = record[`INSTRUCTION-1:0];
    assign valid = !rst && allowed && (offered || !pause);
    assign resting = !allowed;
    always @(posedge clk)
        if (rst) begin
            accepted <= 0;
            offered <= 0;
        end else if (valid && ready) begin
            accepted <= accepted + 1;
            offered <= 0;
        end else begin
            offered <= valid;
        end
endmodule

module elementwise (
    input  wire clk,
    output reg  done,
    output reg  timeout,
    output reg  stray,
    output reg  [47:0]  cycles,
    output wire [31:0]  vector_accepted,
    output wire [31:0]  scalar_accepted,
    output reg  [31:0]  vector_retired,
    output reg  [31:0]  scalar_retired,
    output wire [`ERROR-1:0]    vector_error,
    output wire [`ERROR-1:0]    scalar_error,
    output wire [`COUNTERS-1:0] vector_counters,
    output wire [`COUNTERS-1:0] scalar_counters
);
    localparam SBUF_BITS = 32 * `PARTITIONS;
    localparam PSUM_BITS = 32 * `COLUMNS;
    // What a memory puts out when it was not asked: nobody may rely on the data of an earlier request.
    localparam NOTHING = 32'h7fa5c35a;
    // Cycles in which nothing happens before a run is over, so that whatever comes late is seen.
    localparam REST = 16;

    reg [SBUF_BITS-1:0] sbuf [0:`SBUF_DEPTH-1];
    reg [PSUM_BITS-1:0] psum [0:`PSUM_DEPTH-1];

    reg [8*1024-1:0] path;
    reg [31:0] noise_vector, noise_scalar;
    integer sbuf_count, psum_count, limit, stall, seed, recover, events, file, word;

    initial begin
        done = 0;
        timeout = 0;
        stray = 0;
        cycles = 0;
        if (!$value$plusargs("limit=%d", limit)) $fatal(1, "+limit is missing");
        if (!$value$plusargs("sbuf_count=%d", sbuf_count)) $fatal(1, "+sbuf_count is missing");
        if (!$value$plusargs("psum_count=%d", psum_count)) $fatal(1, "+psum_count is missing");
        if (sbuf_count > 0 && $value$plusargs("sbuf=%s", path)) $readmemh(path, sbuf, 0, sbuf_count - 1);
        if (psum_count > 0 && $value$plusargs("psum=%s", path)) $readmemh(path, psum, 0, psum_count - 1);
        events = 0;
        if ($value$plusargs("events=%s", path)) begin
            events = $fopen(path, "w");
            if (events == 0) $fatal(1, "cannot open the file of events");
        end
        if (!$value$plusargs("stall=%d", stall)) stall = 0;
        if (!$value$plusargs("noise=%d", seed)) seed = 1;
        if (!$value$plusargs("recover=%d", recover)) recover = 0;
        // Two independent generators decide who pauses, a byte each for four streams; neither may start at 0.
        noise_vector = seed * 32'h9e3779b1 + 32'd1;
        noise_scalar = seed * 32'h85ebca77 + 32'd2;
    end

    reg [3:0] reset = 4'hf;
    wire rst = reset[0];
    always @(posedge clk) reset <= reset >> 1;

    always @(posedge clk) if (stall != 0) begin
        noise_vector <= xorshift(noise_vector);
        noise_scalar <= xorshift(noise_scalar);
    end

    // Streams of an engine: 0 instructions, 1 reads of SBUF, 2 reads of PSUM, 3 writes.
    wire [3:0] vector_pause, scalar_pause;
    genvar stream;
    generate
        for (stream = 0; stream < 4; stream = stream + 1) begin : pauses
            assign vector_pause[stream] = {24'd0, noise_vector[8*stream +: 8]} < stall;
            assign scalar_pause[stream] = {24'd0, noise_scalar[8*stream +: 8]} < stall;
        end
    endgenerate

    wire [`INSTRUCTION-1:0] vector_payload, scalar_payload;
    wire vector_valid, vector_ready, vector_resting, vector_retires, vector_busy;
    wire scalar_valid, scalar_ready, scalar_resting, scalar_retires, scalar_busy;
    feeder #(.SCALAR(0)) vector_feeder (
        .clk(clk),
        .rst(rst),
        .pause(vector_pause[0]),
        .vector_retired(vector_retired),
        .scalar_retired(scalar_retired),
        .payload(vector_payload),
        .valid(vector_valid),
        .ready(vector_ready),
        .accepted(vector_accepted),
        .resting(vector_resting)
    );
    feeder #(.SCALAR(1)) scalar_feeder (
        .clk(clk),
        .rst(rst),
        .pause(scalar_pause[0]),
        .vector_retired(vector_retired),
        .scalar_retired(scalar_retired),
        .payload(scalar_payload),
        .valid(scalar_valid),
        .ready(scalar_ready),
        .accepted(scalar_accepted),
        .resting(scalar_resting)
    );

    wire                 vector_sbuf_valid, vector_psum_valid, vector_write_valid, vector_write_storage;
    wire [17:0]          vector_sbuf_address, vector_psum_address, vector_write_address;
    wire [`PARTITIONS-1:0] vector_write_enable;
    wire [3:0]           vector_write_mask;
    wire [SBUF_BITS-1:0] vector_write_data;
    reg  [SBUF_BITS-1:0] vector_sbuf_data;
    reg  [PSUM_BITS-1:0] vector_psum_data;
    wire                 scalar_sbuf_valid, scalar_psum_valid, scalar_write_valid, scalar_write_storage;
    wire [17:0]          scalar_sbuf_address, scalar_psum_address, scalar_write_address;
    wire [`PARTITIONS-1:0] scalar_write_enable;
    wire [3:0]           scalar_write_mask;
    wire [SBUF_BITS-1:0] scalar_write_data;
    reg  [SBUF_BITS-1:0] scalar_sbuf_data;
    reg  [PSUM_BITS-1:0] scalar_psum_data;

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
    always @(posedge clk) begin
        vector_sbuf_data <= {`PARTITIONS{NOTHING}};
        vector_psum_data <= {`COLUMNS{NOTHING}};
        scalar_sbuf_data <= {`PARTITIONS{NOTHING}};
        scalar_psum_data <= {`COLUMNS{NOTHING}};
        if (vector_sbuf_valid && !vector_pause[1]) begin
            if ({16'd0, vector_sbuf_address[17:2]} < sbuf_count) vector_sbuf_data <= sbuf[vector_sbuf_address[17:2]];
            else stray = 1;
        end
        if (vector_psum_valid && !vector_pause[2]) begin
            if ({16'd0, vector_psum_address[17:2]} < psum_count) vector_psum_data <= psum[vector_psum_address[13:2]];
            else stray = 1;
        end
        if (scalar_sbuf_valid && !scalar_pause[1]) begin
            if ({16'd0, scalar_sbuf_address[17:2]} < sbuf_count) scalar_sbuf_data <= sbuf[scalar_sbuf_address[17:2]];
            else stray = 1;
        end
        if (scalar_psum_valid && !scalar_pause[2]) begin
            if ({16'd0, scalar_psum_address[17:2]} < psum_count) scalar_psum_data <= psum[scalar_psum_address[13:2]];
            else stray = 1;
        end
        if (vector_write_valid && !vector_pause[3])
            write(vector_write_storage, vector_write_address[17:2], vector_write_enable, vector_write_mask,
                  vector_write_data);
        if (scalar_write_valid && !scalar_pause[3])
            write(scalar_write_storage, scalar_write_address[17:2], scalar_write_enable, scalar_write_mask,
                  scalar_write_data);
    end

    // The clock of the result runs from the first instruction offered to the last one retired.
    reg [47:0] elapsed, started;
    reg [31:0] rest;
    reg        running;
    wire       active = vector_valid || scalar_valid || vector_busy || scalar_busy || vector_retires || scalar_retires
                        || vector_write_valid || scalar_write_valid;
    wire       vector_quiet = !vector_busy && !vector_write_valid && !vector_retires;
    wire       scalar_quiet = !scalar_busy && !scalar_write_valid && !scalar_retires;
    // An instruction that waits for what an error prevents, or that is offered to an engine with an error, never comes.
    wire       resting = vector_quiet && (recover != 0 ? vector_resting && !vector_error[`ERROR_VALID]
                                                       : vector_resting || vector_error[`ERROR_VALID])
                         && scalar_quiet && (recover != 0 ? scalar_resting && !scalar_error[`ERROR_VALID]
                                                          : scalar_resting || scalar_error[`ERROR_VALID]);
    reg [31:0] vector_rest, scalar_rest;
    reg        vector_restart, scalar_restart;
    always @(posedge clk)
        if (rst) begin
            vector_retired <= 0;
            scalar_retired <= 0;
            elapsed <= 0;
            started <= 0;
            rest <= 0;
            running <= 0;
            vector_rest <= 0;
            scalar_rest <= 0;
            vector_restart <= 0;
            scalar_restart <= 0;
        end else if (!done) begin
            elapsed <= elapsed + 1;
            vector_retired <= vector_retired + {31'd0, vector_retires};
            scalar_retired <= scalar_retired + {31'd0, scalar_retires};
            if (active && !running) begin
                running <= 1;
                started <= elapsed;
            end
            if (vector_retires || scalar_retires) cycles <= elapsed - (running ? started : elapsed) + 1;
            if (events != 0) begin
                if (vector_valid && vector_ready) $fwrite(events, "a vector %0d\n", elapsed);
                if (scalar_valid && scalar_ready) $fwrite(events, "a scalar %0d\n", elapsed);
                if (vector_retires) $fwrite(events, "r vector %0d\n", elapsed);
                if (scalar_retires) $fwrite(events, "r scalar %0d\n", elapsed);
            end
            vector_restart <= 0;
            vector_rest <= recover != 0 && vector_error[`ERROR_VALID] && vector_quiet && !vector_restart ? vector_rest + 1 : 0;
            if (vector_rest == REST) begin
                vector_restart <= 1;
                vector_rest <= 0;
                $fwrite(events, "e vector %0d %0d %0d\n", elapsed, vector_error[`ERROR_CAUSE], vector_error[`ERROR_NUMBER]);
            end
            scalar_restart <= 0;
            scalar_rest <= recover != 0 && scalar_error[`ERROR_VALID] && scalar_quiet && !scalar_restart ? scalar_rest + 1 : 0;
            if (scalar_rest == REST) begin
                scalar_restart <= 1;
                scalar_rest <= 0;
                $fwrite(events, "e scalar %0d %0d %0d\n", elapsed, scalar_error[`ERROR_CAUSE], scalar_error[`ERROR_NUMBER]);
            end
            rest <= resting ? rest + 1 : 0;
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

`ifdef VECTOR
    vector_engine vector (
        .clk(clk),
        .rst(rst || vector_restart),
        .instructions__payload(vector_payload),
        .instructions__valid(vector_valid),
        .instructions__ready(vector_ready),
        .sbuf__valid(vector_sbuf_valid),
        .sbuf__address(vector_sbuf_address),
        .sbuf__ready(!vector_pause[1]),
        .sbuf__data(vector_sbuf_data),
        .psum__valid(vector_psum_valid),
        .psum__address(vector_psum_address),
        .psum__ready(!vector_pause[2]),
        .psum__data(vector_psum_data),
        .write__valid(vector_write_valid),
        .write__storage(vector_write_storage),
        .write__address(vector_write_address),
        .write__enable(vector_write_enable),
        .write__mask(vector_write_mask),
        .write__data(vector_write_data),
        .write__ready(!vector_pause[3]),
        .retired(vector_retires),
        .error(vector_error),
        .busy(vector_busy),
        .active(),
        .counters(vector_counters)
    );
`else
    assign {vector_ready, vector_sbuf_valid, vector_psum_valid, vector_write_valid, vector_write_storage} = 0;
    assign {vector_sbuf_address, vector_psum_address, vector_write_address, vector_write_mask} = 0;
    assign {vector_retires, vector_busy, vector_error, vector_counters} = 0;
    assign vector_write_enable = 0;
    assign vector_write_data = 0;
`endif

`ifdef SCALAR
    scalar_engine scalar (
        .clk(clk),
        .rst(rst || scalar_restart),
        .instructions__payload(scalar_payload),
        .instructions__valid(scalar_valid),
        .instructions__ready(scalar_ready),
        .sbuf__valid(scalar_sbuf_valid),
        .sbuf__address(scalar_sbuf_address),
        .sbuf__ready(!scalar_pause[1]),
        .sbuf__data(scalar_sbuf_data),
        .psum__valid(scalar_psum_valid),
        .psum__address(scalar_psum_address),
        .psum__ready(!scalar_pause[2]),
        .psum__data(scalar_psum_data),
        .write__valid(scalar_write_valid),
        .write__storage(scalar_write_storage),
        .write__address(scalar_write_address),
        .write__enable(scalar_write_enable),
        .write__mask(scalar_write_mask),
        .write__data(scalar_write_data),
        .write__ready(!scalar_pause[3]),
        .retired(scalar_retires),
        .error(scalar_error),
        .busy(scalar_busy),
        .active(),
        .counters(scalar_counters)
    );
`else
    assign {scalar_ready, scalar_sbuf_valid, scalar_psum_valid, scalar_write_valid, scalar_write_storage} = 0;
    assign {scalar_sbuf_address, scalar_psum_address, scalar_write_address, scalar_write_mask} = 0;
    assign {scalar_retires, scalar_busy, scalar_error, scalar_counters} = 0;
    assign scalar_write_enable = 0;
    assign scalar_write_data = 0;
`endif
endmodule
