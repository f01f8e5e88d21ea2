// Plays a file of cases through one unit, a case every `INTERVAL cycles, and writes the results to another file, so that
// the simulator never waits for Python between the first case and the last. `UNIT, `WIDTH and `INTERVAL are defined by
// run/harness/player.py.
//
// Plusargs: +cases=FILE, one hexadecimal word a line; +results=FILE, one hexadecimal word a line; +bubbles for more idle
// cycles between the cases; in all of them the unit sees other data. `done` rises when the last result is written, or
// when nothing has come out for `PATIENCE cycles since the last case went in.
`define PATIENCE 256

module player (
    input  wire clk,
    output reg  done
);
    reg  [8*1024-1:0] path;
    integer           cases_file, results_file, fields;
    reg               bubbles;

    reg  [`WIDTH-1:0] word, next_word;
    reg               valid;
    wire [31:0]       result;
    wire              result_valid;

    // A maximal 16-bit LFSR: the same bubbles in every simulator.
    reg  [15:0]       lfsr;
    reg               ended;
    reg  [15:0]       idle;
    integer           pause;

    `UNIT unit (.clk, .rst(1'b0), .valid, .word, .result, .result_valid);

    initial begin
        {done, valid, word, ended, idle, pause} = 0;
        lfsr = 1;
        bubbles = $test$plusargs("bubbles") ? 1'b1 : 1'b0;
        if (!$value$plusargs("cases=%s", path)) $fatal(1, "+cases is missing");
        cases_file = $fopen(path, "r");
        if (!$value$plusargs("results=%s", path)) $fatal(1, "+results is missing");
        results_file = $fopen(path, "w");
        if (cases_file == 0 || results_file == 0) $fatal(1, "player cannot open its files");
    end

    always @(posedge clk) if (!done) begin
        lfsr <= {lfsr[14:0], lfsr[15] ^ lfsr[13] ^ lfsr[12] ^ lfsr[10]};
        if (ended || pause != 0 || (bubbles && lfsr[1:0] == 2'b00)) begin
            valid <= 0;
            word <= ~word;
            if (pause != 0) pause <= pause - 1;
        end else begin
            pause <= `INTERVAL - 1;
            fields = $fscanf(cases_file, "%h\n", next_word);
            valid <= fields == 1;
            word <= next_word;
            if (fields != 1) ended <= 1;
        end

        if (result_valid === 1'b1) $fwrite(results_file, "%h\n", result);
        idle <= (!ended || result_valid === 1'b1) ? 0 : idle + 1;
        if (idle == `PATIENCE) begin
            $fclose(results_file);
            done <= 1;
        end
    end
endmodule
