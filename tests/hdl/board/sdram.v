// Plays words into the SDRAM controller with the model of the chip behind it, and writes what is read to a file.
// Plusargs: +words=FILE, +words_count=N: a hexadecimal line each: 16 bits of cycles that pass before, the payload; +read=FILE.
`timescale 1ns / 1ps
module sdram_bench (input wire clk, output reg done);
    reg [8*1024-1:0] path;
    reg [63:0] words [0:4095];
    integer words_count, read;
    integer place = 0, pause = 0, reads = 0, answers = 0, still = 0;
    reg [7:0] reset = 15;
    wire rst = reset != 0;
    initial begin
        done = 0;
        `ARGUMENTS
    end

    wire [63:0] line = words[place];
    wire valid = !rst && place < words_count && pause >= {16'd0, line[63:48]};
    wire ready, read_valid, chip_ready, enable, drive;
    wire [15:0] read_word, o, i;
    wire [2:0] command;
    wire [1:0] mask, bank;
    wire [`ROW_BITS-1:0] address;
    integer taken = 0, cycle = 0;
    always @(posedge clk) begin
        if (rst) reset <= reset - 1;
        cycle <= cycle + 1;
        pause <= valid && ready ? 0 : pause + 1;
        if (valid && ready) begin
            place <= place + 1;
            if (!line[`WRITE_BIT]) reads <= reads + 1;
        end
        if (read_valid) begin
            $fwrite(read, "%h %0d\n", read_word, cycle);
            answers <= answers + 1;
        end
        still <= place == words_count && reads == answers ? still + 1 : 0;
        if (still == 2000) begin
            $fclose(read);
            done <= 1;
        end
    end
    sdram_controller controller (
        .clk, .rst, .words__valid(valid), .words__ready(ready), .words__payload(line[`WORD-1:0]),
        .read__valid(read_valid), .read__payload(read_word), .ready(chip_ready),
        .pins__enable(enable), .pins__command(command), .pins__bank(bank), .pins__address(address), .pins__mask(mask),
        .pins__o(o), .pins__drive(drive), .pins__i(i)
    );
    sdram #(`CHIP) chip (.clk, .enable, .drive, .command, .bank, .address, .mask, .o, .i);
endmodule
