// A model of an SDRAM chip of single data rate, with burst length 1: it does what it is told, and ends the simulation when
// it is told so at a time, or in an order, that the data sheet forbids. Times are in ps. Its clock is the other edge of
// `clk`. What has not been written is no zeros, and what is on the data lines while no word is, is none that was written.
module sdram #(
    parameter BANK_BITS = 2, ROW_BITS = 13, COLUMN_BITS = 9, CAS_LATENCY = 2,
    parameter [63:0] PERIOD = 40000, START = 0, TRCD = 0, TRP = 0, TRAS = 0, TRC = 0, TRFC = 0, TWR = 0, TRRD = 0, TREFI = 0,
    parameter [63:0] TMRD = 2
) (
    input  wire                 clk, enable, drive,
    input  wire [2:0]           command,
    input  wire [BANK_BITS-1:0] bank,
    input  wire [ROW_BITS-1:0]  address,
    input  wire [1:0]           mask,
    input  wire [15:0]          o,
    output reg  [15:0]          i
);
    localparam [2:0] NOP = 3'b000, ACTIVATE = 3'b100, READ = 3'b010, WRITE = 3'b011, PRECHARGE = 3'b101, REFRESH = 3'b110,
                     LOAD_MODE = 3'b111;
    localparam BANKS = 1 << BANK_BITS;
    localparam WORD_BITS = BANK_BITS + ROW_BITS + COLUMN_BITS;

    reg  [15:0] memory [0:(1 << WORD_BITS) - 1];
    reg  [ROW_BITS-1:0] row [0:BANKS-1];
    reg  [BANKS-1:0] is_open;
    reg  [63:0] now, mode_at, refresh_at, any_activate_at, due_at, refreshes;
    reg  [63:0] activate_at [0:BANKS-1], precharge_at [0:BANKS-1], write_at [0:BANKS-1];
    reg         has_mode, was_closed;
    reg  [15:0] word [0:CAS_LATENCY-1];
    reg  [CAS_LATENCY-1:0] driven;
    reg  [1:0]  mask_before;
    integer     n;
    wire [WORD_BITS-1:0] place = {row[bank], bank, address[COLUMN_BITS-1:0]};

    initial begin
        {is_open, mode_at, refresh_at, any_activate_at, due_at, refreshes, has_mode, was_closed, driven, mask_before, i} = 0;
        now = 0;
        for (n = 0; n < BANKS; n = n + 1) {activate_at[n], precharge_at[n], write_at[n], row[n]} = 0;
        for (n = 0; n < (1 << WORD_BITS); n = n + 1) memory[n] = n[15:0] ^ 16'h5aa5;
    end

    // Ends the simulation unless `since` lies so long ago; 0 is never.
    task need(input [63:0] since, input [63:0] time_, input [8*12-1:0] rule);
        if (since != 0 && now - since < time_) begin
            $display("SDRAM: %0s must be %0d ps, not %0d, at %0d ps", rule, time_, now - since, now);
            $fatal(1);
        end
    endtask

    task forbid(input broken, input [8*48-1:0] rule);
        if (broken) begin
            $display("SDRAM: %0s, bank %0d, at %0d ps", rule, bank, now);
            $fatal(1);
        end
    endtask

    always @(negedge clk) begin
        now <= now + PERIOD;
        mask_before <= mask;
        for (n = 1; n < CAS_LATENCY; n = n + 1) word[n] <= word[n-1];
        driven <= {driven[CAS_LATENCY-2:0], 1'b0};
        forbid(driven[CAS_LATENCY-1] && drive, "both sides drive the data lines");
        if (driven[CAS_LATENCY-2]) i <= mask_before == 0 ? word[CAS_LATENCY-2] : 16'hxxxx;
        else i <= ~i ^ 16'h1234;

        if (command != NOP) begin
            forbid(!enable, "a command while the clock is off");
            forbid(now < START, "a command before the chip has started");
            need(mode_at, TMRD * PERIOD, "tMRD");
            need(refresh_at, TRFC, "tRFC");
        end
        if (has_mode) begin
            forbid(now > due_at, "a refresh is overdue");
        end
        case (command)
        ACTIVATE: begin
            forbid(!has_mode, "ACTIVATE before the mode is set");
            forbid(is_open[bank], "ACTIVATE of a bank that is open");
            need(precharge_at[bank], TRP, "tRP");
            need(activate_at[bank], TRC, "tRC");
            need(any_activate_at, TRRD, "tRRD");
            row[bank] <= address;
            is_open[bank] <= 1;
            activate_at[bank] <= now;
            any_activate_at <= now;
        end
        READ, WRITE: begin
            forbid(!is_open[bank], "READ or WRITE of a bank that is closed");
            forbid(address[10], "READ or WRITE with a precharge");
            need(activate_at[bank], TRCD, "tRCD");
            forbid(drive != (command == WRITE), "the wrong side drives the data lines");
            if (command == READ) begin
                word[0] <= memory[place];
                driven[0] <= 1;
            end else begin
                if (!mask[0]) memory[place][7:0] <= o[7:0];
                if (!mask[1]) memory[place][15:8] <= o[15:8];
                write_at[bank] <= now;
            end
        end
        PRECHARGE: for (n = 0; n < BANKS; n = n + 1) if (address[10] || n == {30'd0, bank}) begin
            if (is_open[n]) begin
                need(activate_at[n], TRAS, "tRAS");
                need(write_at[n], TWR, "tWR");
            end
            is_open[n] <= 0;
            precharge_at[n] <= now;
            if (address[10]) was_closed <= 1;
        end
        REFRESH: begin
            forbid(is_open != 0 || !was_closed, "REFRESH while a bank is open");
            for (n = 0; n < BANKS; n = n + 1) need(precharge_at[n], TRP, "tRP");
            refresh_at <= now;
            refreshes <= refreshes + 1;
            // Each row in its turn: what came too soon is no reason to be late afterwards.
            due_at <= due_at > now + TREFI ? now + 2 * TREFI : due_at + TREFI;
        end
        LOAD_MODE: begin
            forbid(is_open != 0 || !was_closed, "LOAD MODE while a bank is open");
            forbid(refreshes < 8, "LOAD MODE before eight refreshes");
            forbid(address != {{ROW_BITS-7{1'b0}}, CAS_LATENCY[2:0], 4'b0000}, "a mode that the model does not have");
            has_mode <= 1;
            mode_at <= now;
            due_at <= now + 2 * TREFI;
        end
        default: ;
        endcase
    end
endmodule
