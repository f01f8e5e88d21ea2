// Runs a program on the tensor engine without the simulator ever waiting for Python: instructions, operands and the
// words to read back from PSUM come from files, results go to a file. `ROWS, `COLUMNS, `INSTRUCTION (bits), the memories'
// depths, and `PORT_WIRES and `PORTS of the engine (with _ in place of __) are defined by run/harness/engines/tensor.py.
//
// Plusargs (`ARGUMENTS): +instructions, +drains: hexadecimal files, +<name>_count their lines; +stationary, +moving:
// binary files of +<name>_count words, most significant byte first; +results: the file to write; +limit: cycles after
// which the run is given up; +stall=P, +seed=S: every stream pauses in P of 256 cycles at random.
//
// An instruction record is {drains that must be done before it, instruction}; a drain record is {moves that must have
// retired before it, first PSUM word, words}. `done` rises when all results are written, or at the limit (`timeout`).
module tensor (
    input  wire clk,
    output reg  done,
    output reg  timeout,
    output wire [`ERROR-1:0]    error,
    output reg  [47:0]          cycles,
    output wire [`COUNTERS-1:0] counters
);
    localparam RECORD = 32 + `INSTRUCTION;

    reg [RECORD-1:0]     instructions [0:`PROGRAM_DEPTH-1];
    reg [63:0]           drains       [0:`PROGRAM_DEPTH-1];
    reg [`ROWS*128-1:0]  stationary   [0:`STATIONARY_DEPTH-1];
    reg [`ROWS*32-1:0]   moving       [0:`MOVING_DEPTH-1];

    reg [8*1024-1:0] path;
    reg [31:0] noise_program, noise_stationary, noise_moving;
    integer instructions_count, drains_count, stationary_count, moving_count, results, limit, stall, seed;

    initial begin
        {done, timeout, cycles} = 0;
        `ARGUMENTS
        // Three independent generators decide who pauses; none may start at 0.
        noise_program = seed * 32'h9e3779b1 + 32'd1;
        noise_stationary = seed * 32'h85ebca77 + 32'd2;
        noise_moving = seed * 32'hc2b2ae3d + 32'd3;
    end

    reg [3:0] reset = 4'hf;
    wire rst = reset[0];
    always @(posedge clk) reset <= reset >> 1;

    always @(posedge clk) if (stall != 0) begin
        noise_program <= xorshift(noise_program);
        noise_stationary <= xorshift(noise_stationary);
        noise_moving <= xorshift(noise_moving);
    end

    `PORT_WIRES

    // Program: a record is offered once its drains are done, and then stays.
    reg  [31:0] next;
    reg  [31:0] drained;
    reg  [31:0] retired_count;
    reg         offered;
    wire [RECORD-1:0] record = instructions[next];
    wire        allowed = next < instructions_count && drained >= record[RECORD-1:`INSTRUCTION];
    wire        valid = !rst && allowed && (offered || stall == 0 || {24'd0, noise_program[7:0]} >= stall);
    assign instructions_payload = record[`INSTRUCTION-1:0];
    assign instructions_valid = valid;
    always @(posedge clk)
        if (rst) {next, offered} <= 0;
        else begin
            next <= next + {31'd0, valid && instructions_ready};
            offered <= valid && !instructions_ready;
        end

    // Memories: a request is taken unless the memory pauses; its data follows a cycle later, or two.
    assign stationary_ready = stall == 0 || {24'd0, noise_stationary[7:0]} >= stall;
    assign moving_ready = stall == 0 || {24'd0, noise_moving[7:0]} >= stall;
    reg  [`ROWS*128-1:0] stationary_read, stationary_late;
    reg  [`ROWS*32-1:0]  moving_read, moving_late;
    wire [`ROWS*128-1:0] stationary_data = `READ_LATENCY == 1 ? stationary_read : stationary_late;
    wire [`ROWS*32-1:0]  moving_data = `READ_LATENCY == 1 ? moving_read : moving_late;
    always @(posedge clk) begin
        if (stationary_valid && stationary_ready) stationary_read <= stationary[stationary_address[17:4]];
        if (moving_valid && moving_ready) moving_read <= moving[moving_address[17:2]];
        stationary_late <= stationary_read;
        moving_late <= moving_read;
    end

    // Drains: one PSUM word of every partition a cycle, without a gap between drains unless the engine has the bank.
    reg  [31:0] drain;
    reg  [9:0]  word;
    reg         reading;
    wire [63:0] request = drains[drain];
    wire        drain_go = psum_valid && psum_ready;
    wire        drain_last = {22'd0, word} + 1 == {16'd0, request[15:0]};
    wire [11:0] place = request[27:16] + {2'd0, word};
    assign psum_valid = !rst && drain < drains_count && retired_count >= request[63:32];
    assign psum_address = {4'd0, place, 2'd0};
    always @(posedge clk)
        if (rst) {drain, word, reading, drained, retired_count} <= 0;
        else begin
            if (retired) retired_count <= retired_count + 1;
            reading <= drain_go;
            if (drain_go) begin
                word <= drain_last ? 10'd0 : word + 10'd1;
                if (drain_last) begin
                    drain <= drain + 1;
                    drained <= drained + 1;
                end
            end
            if (reading) $fwrite(results, "%h\n", psum_data);
        end

    // The clock of the result: from the first instruction offered to the last PSUM word written.
    reg  [31:0] elapsed;
    reg         started;
    wire        engine_busy = busy;  // under a name of its own, for waveforms of the harness alone
    wire        finished = next == instructions_count && drain == drains_count && !reading && !engine_busy;
    always @(posedge clk)
        if (rst) {elapsed, started} <= 0;
        else if (!done) begin
            elapsed <= elapsed + 1;
            started <= started || valid;
            if (started ? engine_busy || next < instructions_count : valid) cycles <= cycles + 1;
            if (finished || error[`ERROR_VALID] || elapsed == limit) begin
                timeout <= !finished && !error[`ERROR_VALID];
                done <= 1;
                $fclose(results);
            end
        end

    // Nobody else writes to PSUM.
    assign {psum_shared_valid, psum_shared_address} = 0;
    assign {psum_write_valid, psum_write_address, psum_write_enable, psum_write_mask, psum_write_data} = 0;
    tensor_engine engine (`PORTS);
endmodule
