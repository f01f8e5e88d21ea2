// What the harnesses of engines share: pauses at random, a look at offers, and who answers at an AXI port.

// A pause for each of eight handshakes, a byte of a 64-bit xorshift each: +stall of 256 cycles. +noise: seed.
module pauses #(parameter SALT = 0) (
    input  wire        clk,
    output wire [7:0]  pause,
    output reg  [63:0] noise
);
    integer    stall, seed;
    reg [63:0] shifted0, shifted1;
    initial begin
        if (!$value$plusargs("stall=%d", stall)) stall = 0;
        if (!$value$plusargs("noise=%d", seed)) seed = 1;
        noise = {32'h9e3779b1 * (seed + SALT), 32'h85ebca77 + seed + 32'h01000193 * SALT};
    end
    always @* begin
        shifted0 = noise ^ (noise << 13);
        shifted1 = shifted0 ^ (shifted0 >> 7);
    end
    always @(posedge clk) noise <= shifted1 ^ (shifted1 << 17);
    genvar g;
    generate
        for (g = 0; g < 8; g = g + 1) begin : handshakes
            assign pause[g] = {24'b0, noise[8*g+:8]} < stall;
        end
    endgenerate
endmodule

// Finds an offer that changes before it is taken.
module offer #(parameter WIDTH = 1) (
    input  wire             clk, rst, valid, ready,
    input  wire [WIDTH-1:0] payload,
    output wire             changes
);
    reg             waited = 0;
    reg [WIDTH-1:0] last;
    assign changes = !rst && waited && (!valid || payload != last);
    always @(posedge clk) begin
        waited <= !rst && valid && !ready;
        last <= payload;
    end
endmodule

// Answers bursts in order, +latency cycles later. The memory, and which addresses are bad, is the machine's affair.
module axi_responder #(
    parameter BYTES = 64,   // of a beat
    parameter PENDING = 64  // bursts of each kind that may be unanswered; a power of two
) (
    input  wire               clk, rst,  // reset of the engine; what is on its way is answered
    input  wire [4:0]         pause,  // B, R, W, AW, AR
    input  wire               arvalid, awvalid, wvalid, wlast, rready, bready,
    input  wire [39:0]        araddr, awaddr,
    input  wire [7:0]         arlen, awlen,
    input  wire [8*BYTES-1:0] wdata,
    input  wire [BYTES-1:0]   wstrb,
    output wire               arready, awready, wready,
    output reg                bvalid = 0,
    output reg                rvalid = 0,
    output reg                rlast,
    output reg  [1:0]         bresp, rresp,
    output reg  [8*BYTES-1:0] rdata,
    output wire [39:0]        read_address, write_address,  // of the beat that is answered, or written, next
    input  wire [8*BYTES-1:0] read_data,                    // what is there
    input  wire               read_bad, write_bad,
    output wire               write,                        // wdata and wstrb go there now
    output wire               reading, writing,             // bursts are unanswered
    output reg  [7:0]         stray = 0                     // the rule of the port that was broken
);
    localparam PLACE = $clog2(BYTES);
    localparam INDEX = $clog2(PENDING);

    reg [39:0] ar_address [0:PENDING-1], aw_address [0:PENDING-1];
    reg [7:0]  ar_len [0:PENDING-1], aw_len [0:PENDING-1];
    reg [63:0] ar_due [0:PENDING-1], b_due [0:PENDING-1];  // answered at the earliest
    reg        b_bad [0:PENDING-1];
    reg [31:0] ar_in = 0, ar_out = 0, aw_in = 0, aw_out = 0, aw_done = 0;
    reg [7:0]  r_beat = 0, w_beat = 0;
    reg        w_bad = 0;
    reg [63:0] now = 0;
    integer    latency;
    initial if (!$value$plusargs("latency=%d", latency)) latency = 50;

    wire [INDEX-1:0] ar_first = ar_out[INDEX-1:0], aw_first = aw_out[INDEX-1:0], b_first = aw_done[INDEX-1:0];
    wire             r_turn = ar_in != ar_out && now >= ar_due[ar_first] && !pause[3];
    wire             b_turn = aw_out != aw_done && now >= b_due[b_first] && !pause[4];
    wire             r_last = r_beat == ar_len[ar_first];
    assign arready = !pause[0] && ar_in - ar_out < PENDING;
    assign awready = !pause[1] && aw_in - aw_done < PENDING;
    assign wready = !pause[2] && aw_in != aw_out;
    assign read_address = ar_address[ar_first] + ({32'b0, r_beat} << PLACE);
    assign write_address = aw_address[aw_first] + ({32'b0, w_beat} << PLACE);
    assign write = wvalid && wready && !rst && !write_bad;
    assign reading = ar_in != ar_out || rvalid;
    assign writing = aw_in != aw_done || bvalid;

    always @(posedge clk) begin
        now <= now + 1;
        if (!rvalid || rready) begin
            rvalid <= r_turn;
            rdata <= read_data;
            rresp <= read_bad ? 2 : 0;
            rlast <= r_last;
            if (r_turn) begin
                r_beat <= r_last ? 0 : r_beat + 1;
                if (r_last) ar_out <= ar_out + 1;
            end
        end
        if (arvalid && arready && !rst) begin
            ar_address[ar_in[INDEX-1:0]] <= araddr;
            ar_len[ar_in[INDEX-1:0]] <= arlen;
            ar_due[ar_in[INDEX-1:0]] <= now + latency - 1;
            ar_in <= ar_in + 1;
        end
        if (awvalid && awready && !rst) begin
            aw_address[aw_in[INDEX-1:0]] <= awaddr;
            aw_len[aw_in[INDEX-1:0]] <= awlen;
            aw_in <= aw_in + 1;
        end
        if (wvalid && wready && !rst) begin
            w_beat <= wlast ? 0 : w_beat + 1;
            w_bad <= !wlast && (w_bad || write_bad);
            if (wlast != (w_beat == aw_len[aw_first]) || wstrb == 0) stray <= 101;
            if (wlast) begin
                b_bad[aw_first] <= w_bad || write_bad;
                b_due[aw_first] <= now + latency;
                aw_out <= aw_out + 1;
            end
        end
        if (!bvalid || bready) begin
            bvalid <= b_turn;
            bresp <= b_bad[b_first] ? 2 : 0;
            if (b_turn) aw_done <= aw_done + 1;
        end
        // No burst crosses a page or starts beside a beat.
        if (arvalid && !rst && ((araddr ^ (araddr + ({32'b0, arlen} << PLACE))) >= 4096 || araddr[PLACE-1:0] != 0))
            stray <= 102;
        if (awvalid && !rst && ((awaddr ^ (awaddr + ({32'b0, awlen} << PLACE))) >= 4096 || awaddr[PLACE-1:0] != 0))
            stray <= 103;
    end

    wire [2:0] changes;
    offer #(48) ar (clk, rst, arvalid, arready, {araddr, arlen}, changes[0]);
    offer #(48) aw (clk, rst, awvalid, awready, {awaddr, awlen}, changes[1]);
    offer #(9 * BYTES + 1) w (clk, rst, wvalid, wready, {wlast, wstrb, wdata}, changes[2]);
    always @(posedge clk) if (changes != 0) stray <= 104;
endmodule
