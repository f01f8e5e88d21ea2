// Runs a program on the controller's Cpu without the simulator ever waiting for Python: memory, timer, and a few
// registers around it, and files for the trace and the console.
//
// Defined by run/harness/riscv.py: `PORT_WIRES and `PORTS of the Cpu (with _ in place of __), `MEMORY_BASE, `MEMORY_BITS (of a
// word's number), and the addresses `TIMER_NOW and `TIMER_COMPARE (64 bits each), `CONSOLE (written: a byte to print),
// `EXTERNAL (bit 0: the external interrupt). Elsewhere every access is refused, and these registers take whole words
// alone, but for loads from the timer.
//
// Plusargs (`ARGUMENTS): +memory: a binary file of +memory_count words, most significant byte first; +tohost: address
// of the word whose being written ends the run; +fromhost: address of the word that answers it, 0 if there is none;
// +trace: file for a line "pc instruction trap cause rd value time external" for every instruction and interrupt, left
// out if not wanted; +memory_out: file for the memory at the end in hexadecimal, likewise; +console: file for what the
// program prints; +stall=P, +seed=S: either bus refuses requests and holds back responses in P of 256 cycles at random;
// +external_rate=P: the external interrupt is raised in P of 65536 cycles at random; +limit: cycles after which the run
// is given up; +patience: cycles in which nothing retires, likewise.
//
// What is written to the word `tohost` is the program's code, unless it points at a request of the customary host
// interface (number 64: write; the buffer's address and length are 16 and 24 bytes behind): then its text goes to the
// console, and `fromhost` becomes 1.

// One side of a bus: takes requests, keeps their answers in order, and gives each at the earliest in the next cycle.
module responder (
    input  wire        clk, rst, refuse, hold, valid, fault,
    input  wire [31:0] found,
    output wire        ready, response, error,
    output wire [31:0] result
);
    localparam DEPTH = 4;
    // What a bus carries when nothing was answered: nobody may rely on an earlier word.
    localparam NOTHING = 32'h7fa5c35a;

    reg [32:0] answers [0:DEPTH-1];
    reg [1:0]  first, next;
    reg [2:0]  count;

    assign ready = !refuse && count != DEPTH;
    assign response = count != 0 && !hold;
    assign {error, result} = response ? answers[first] : {1'b1, NOTHING};
    always @(posedge clk)
        if (rst) {first, next, count} <= 0;
        else begin
            if (valid && ready) begin
                answers[next] <= {fault, fault ? NOTHING : found};
                next <= next + 1;
            end
            if (response) first <= first + 1;
            count <= count + {2'd0, valid && ready} - {2'd0, response};
        end
endmodule

module riscv (
    input  wire        clk,
    output reg         done, ended, broken,
    output reg  [31:0] code, silent,
    output reg  [47:0] cycles, instructions
);
    localparam MEMORY_WORDS = 1 << `MEMORY_BITS;
    // Cycles after the end in which the trace goes on, so that it has the instruction that ended the run.
    localparam REST = 200;

    reg [31:0] memory [0:MEMORY_WORDS-1];
    reg [8*1024-1:0] path;
    reg [31:0] tohost, fromhost, noise, noise_external;
    integer memory_count, limit, patience, stall, seed, external_rate, trace, console, file, word;

    initial begin
        {done, ended, code, cycles, instructions, silent, broken} = 0;
        for (word = 0; word < MEMORY_WORDS; word = word + 1) memory[word] = 0;
        `ARGUMENTS
        trace = 0;
        if ($value$plusargs("trace=%s", path)) trace = $fopen(path, "w");
        // Neither generator may start at 0.
        noise = seed * 32'h9e3779b1 + 32'd1;
        noise_external = seed * 32'h85ebca77 + 32'd2;
    end

    reg [3:0] reset = 4'hf;
    wire rst = reset[0];
    always @(posedge clk) reset <= reset >> 1;

    wire [3:0] pause;
    genvar stream;
    generate
        for (stream = 0; stream < 4; stream = stream + 1) begin : pauses
            assign pause[stream] = {24'd0, noise[8*stream +: 8]} < stall;
        end
    endgenerate

    `PORT_WIRES

    function in_memory(input [31:0] address);
        in_memory = address - `MEMORY_BASE < 4 * MEMORY_WORDS;
    endfunction
    function [`MEMORY_BITS-1:0] place(input [31:0] address);
        reg [31:0] offset;
        begin
            offset = address - `MEMORY_BASE;
            place = offset[`MEMORY_BITS+1:2];
        end
    endfunction

    responder fetching (
        .clk, .rst, .refuse(pause[0]), .hold(pause[1]), .valid(fetch_valid), .ready(fetch_ready),
        .found(memory[place(fetch_address)]), .fault(!in_memory(fetch_address)),
        .response(fetch_response), .result(fetch_result), .error(fetch_error)
    );

    reg [63:0] now, compare;
    reg        external;
    reg [31:0] data_found;
    reg        data_fault;
    wire        whole = data_mask == 4'hf;
    localparam [31:0] TIMER_NOW = `TIMER_NOW;
    localparam [31:0] TIMER_COMPARE = `TIMER_COMPARE;
    wire [63:0] timer = data_address[31:3] == TIMER_NOW[31:3] ? now : compare;
    wire [31:0] timer_word = data_address[2] ? timer[63:32] : timer[31:0];
    // A wire of its own: Icarus would make `always @*` wait for every word of the memory.
    wire [31:0] data_word = memory[place(data_address)];
    always @* begin
        data_found = 0;
        data_fault = !whole;
        if (in_memory(data_address)) begin
            data_found = data_word;
            data_fault = 0;
        end else if (data_address[31:3] == TIMER_NOW[31:3] || data_address[31:3] == TIMER_COMPARE[31:3]) begin
            data_found = timer_word;
            data_fault = data_write && !whole;
        end
        else if (data_address == `EXTERNAL) data_found = {31'd0, external};
        else if (data_address != `CONSOLE && data_address != tohost) data_fault = 1;
    end

    responder loading (
        .clk, .rst, .refuse(pause[2]), .hold(pause[3]), .valid(data_valid), .ready(data_ready),
        .found(data_found), .fault(data_fault), .response(data_response), .result(data_result), .error(data_error)
    );

    // What the program tells the host.
    reg [31:0] request, text, left;
    task tell(input [31:0] value);
        begin
            request = memory[place(value)];
            if (value[1:0] == 0 && in_memory(value) && request == 64) begin
                text = memory[place(value + 16)];
                left = memory[place(value + 24)];
                while (left != 0) begin
                    request = memory[place({text[31:2], 2'd0})] >> {text[1:0], 3'd0};
                    $fwrite(console, "%c", request[7:0]);
                    text = text + 1;
                    left = left - 1;
                end
                if (fromhost != 0) memory[place(fromhost)] <= 1;
            end else if (value != 0 || !in_memory(tohost)) begin
                ended <= 1;
                code <= value;
            end
        end
    endtask

    wire taken = data_valid && data_ready && data_write && !data_fault;
    wire [31:0] bits = {{8{data_mask[3]}}, {8{data_mask[2]}}, {8{data_mask[1]}}, {8{data_mask[0]}}};
    always @(posedge clk)
        if (rst) begin
            {now, external} <= 0;
            compare <= 64'hffffffffffffffff;
        end else begin
            now <= now + 1;
            if (stall != 0) noise <= xorshift(noise);
            noise_external <= xorshift(noise_external);
            if ({16'd0, noise_external[15:0]} < external_rate) external <= 1;
            if (taken) begin
                if (in_memory(data_address))
                    memory[place(data_address)] <= memory[place(data_address)] & ~bits | data_data & bits;
                if (data_address == `TIMER_NOW) now[31:0] <= data_data;
                if (data_address == `TIMER_NOW + 4) now[63:32] <= data_data;
                if (data_address == `TIMER_COMPARE) compare[31:0] <= data_data;
                if (data_address == `TIMER_COMPARE + 4) compare[63:32] <= data_data;
                if (data_address == `EXTERNAL) external <= data_data[0];
                if (data_address == `CONSOLE) $fwrite(console, "%c", data_data[7:0]);
                if (data_address == tohost && !ended) tell(data_data);
            end
        end

    reg [31:0] rest;
    always @(posedge clk)
        if (rst) rest <= 0;
        else if (!done) begin
            if (!ended) begin
                cycles <= cycles + 1;
                instructions <= instructions + {47'd0, trace_valid && !trace_trap};
                silent <= trace_valid ? 0 : silent + 1;
            end
            if (trace != 0 && trace_valid)
                $fwrite(trace, "%h %h %h %h %h %h %h %h\n", trace_pc, trace_instruction, trace_trap, trace_cause,
                        trace_rd, trace_value, now, external);
            rest <= ended ? rest + 1 : 0;
            if (rest == REST || silent == patience || cycles == {16'd0, limit}) begin
                done <= 1;
                $fclose(console);
                if (trace != 0) $fclose(trace);
                if ($value$plusargs("memory_out=%s", path)) begin
                    file = $fopen(path, "w");
                    for (word = 0; word < MEMORY_WORDS; word = word + 1) $fwrite(file, "%h\n", memory[word]);
                    $fclose(file);
                end
            end
        end

    // The rules of the bus: a request stays as it is until it is taken; fetches are reads of whole words.
    reg         fetch_kept, data_kept;
    reg  [31:0] fetch_was;
    reg  [68:0] data_was;
    wire [68:0] data_is = {data_write, data_mask, data_address, data_write ? data_data & bits : 32'd0};
    always @(posedge clk) begin
        fetch_kept <= !rst && fetch_valid && !fetch_ready;
        data_kept <= !rst && data_valid && !data_ready;
        fetch_was <= fetch_address;
        data_was <= data_is;
        if (!rst) begin
            if (fetch_kept && !(fetch_valid && fetch_address == fetch_was)) broken <= 1;
            if (data_kept && !(data_valid && data_is == data_was)) broken <= 1;
            if (fetch_valid && (fetch_write || fetch_mask != 4'hf || fetch_address[1:0] != 0)) broken <= 1;
            if (data_valid && (data_mask == 0 || data_address[1:0] != 0)) broken <= 1;
        end
    end

    assign \time = now;
    assign timer_interrupt = now >= compare;
    assign external_interrupt = external;
    controller_cpu cpu (`PORTS);
endmodule
