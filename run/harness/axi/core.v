// Runs an image on the core as a board does: puts it into memory, starts the core through its registers, waits for the
// interrupt, and compares every byte of memory with what is expected. Needs nothing but a simulator.
//
// Defined above: what the core is, and the registers of its host (`HOST_...). `ROOM, the bytes of memory, may be defined
// to something else on the simulator's command line.
//
// Plusargs, besides those of the memory model below (+hbm_latency, +hbm_stall and so on), which all have a default:
//   +image=DIR      what `make image` wrote: image.hex, expected.hex and run.hex; by default the current directory
//   +limit=N        cycles after which the run is given up; by default 50,000,000
//   +reset=N        the host resets the core N cycles after its start, and starts it again; by default it does not
//
// Prints PASSED, or else FAILED with the reason and ends with a status that is not 0.

module `TOP;
    localparam WIDTH = 8 * `BYTES;
    localparam DEPTH = `ROOM / `BYTES;
    localparam PATIENCE = 10000;  // cycles until the core must have answered at s_axi, or ended a reset

    reg clk = 0;
    reg rst = 1;
    always #5 clk = !clk;

    // What make image wrote. run.hex has the image's address, the bytes of memory to compare, the exit code, and the bytes
    // of a beat that the lines of the other files have.
    reg [WIDTH-1:0]  expected [0:DEPTH-1];
    reg [63:0]       run [0:3];
    reg [8*1024-1:0] directory, path;
    integer          limit, reset_after, beats, cycle;
    wire [63:0]      boot = run[0], bytes = run[1], exit_code = run[2];

    reg  [13:0] s_awaddr, s_araddr;
    reg  [31:0] s_wdata;
    reg         s_awvalid = 0, s_wvalid = 0, s_bready = 0, s_arvalid = 0, s_rready = 0;
    wire        s_awready, s_wready, s_bvalid, s_arready, s_rvalid, irq;
    wire [31:0] s_rdata;
    wire [1:0]  s_bresp, s_rresp;
    wire        dump = 0;

    `AXI_WIRES
    `CONSTANT_WIRES
    `SUBJECT subject (
        .aclk(clk), .aresetn(!rst), .irq(irq),
        .s_axi_awaddr(s_awaddr), .s_axi_awprot(3'd0), .s_axi_awvalid(s_awvalid), .s_axi_awready(s_awready),
        .s_axi_wdata(s_wdata), .s_axi_wstrb(4'b1111), .s_axi_wvalid(s_wvalid), .s_axi_wready(s_wready),
        .s_axi_bresp(s_bresp), .s_axi_bvalid(s_bvalid), .s_axi_bready(s_bready),
        .s_axi_araddr(s_araddr), .s_axi_arprot(3'd0), .s_axi_arvalid(s_arvalid), .s_axi_arready(s_arready),
        .s_axi_rdata(s_rdata), .s_axi_rresp(s_rresp), .s_axi_rvalid(s_rvalid), .s_axi_rready(s_rready),
        `PORTS
    );
    `HBM

    task failed(input [8*80-1:0] reason);
        begin
            $display("FAILED: %0s", reason);
            $fatal(1);
        end
    endtask

    always @(posedge clk) begin
        cycle <= rst ? 0 : cycle + 1;
        `CONSTANT_CHECKS
    end

    // An access to a register, which must be answered with OKAY; what was read is in `got`.
    reg [31:0] got;
    reg        refused;
    task access(input writes, input [13:0] offset, input [31:0] value);
        integer waited;
        reg     answered, taken_aw, taken_w, taken_ar;
        begin
            #1;  // behind the edge of the clock: what is driven here is seen at the next one
            {s_awaddr, s_araddr, s_wdata} = {offset, offset, value};
            {s_awvalid, s_wvalid, s_bready, s_arvalid, s_rready} = {{3{writes}}, {2{!writes}}};
            answered = 0;
            waited = 0;
            while (!answered) begin
                @(posedge clk);
                {taken_aw, taken_w, taken_ar} = {s_awready, s_wready, s_arready};
                answered = writes ? s_bvalid : s_rvalid;
                {got, refused} = {s_rdata, (writes ? s_bresp : s_rresp) != 0};
                waited = waited + 1;
                if (waited == PATIENCE) failed("no answer at s_axi");
                #1;
                if (taken_aw) s_awvalid = 0;
                if (taken_w) s_wvalid = 0;
                if (taken_ar) s_arvalid = 0;
            end
            {s_bready, s_rready} = 0;
            if (refused) begin
                $display("register %h refuses to be %0s", offset, writes ? "written" : "read");
                failed("a register refuses an access");
            end
            @(posedge clk);
        end
    endtask

    task load;
        begin
            $sformat(path, "%0s/image.hex", directory);
            $readmemh(path, hbm.memory, 0, beats - 1);
        end
    endtask

    task start;
        begin
            access(1, `HOST_BOOT_LOW, boot[31:0]);
            access(1, `HOST_BOOT_HIGH, boot[63:32]);
            access(1, `HOST_INTERRUPT_ENABLE, `HOST_INTERRUPT_ENABLE_DONE | `HOST_INTERRUPT_ENABLE_ERROR);
            access(1, `HOST_CONTROL, `HOST_CONTROL_START);
        end
    endtask

    // Resets the core in the midst of its run; what it did in memory is undone.
    task restart;
        integer begun;
        begin
            begun = cycle;
            while (cycle < begun + reset_after) @(posedge clk);
            access(0, `HOST_STATUS, 0);
            if ((got & `HOST_STATUS_DONE) != 0) failed("the program ended before the core could be reset");
            access(1, `HOST_CONTROL, `HOST_CONTROL_RESET);
            begun = cycle;
            got = `HOST_STATUS_RESET;
            while ((got & `HOST_STATUS_RESET) != 0) begin
                access(0, `HOST_STATUS, 0);
                if (cycle > begun + PATIENCE) failed("the reset does not end");
            end
            if ((got & (`HOST_STATUS_STARTED | `HOST_STATUS_ERROR)) != 0) failed("the core is not reset");
            if (!(&idle)) failed("a reset leaves bursts without an answer");
            load;
            start;
        end
    endtask

    task judge;
        integer beat, place, differ;
        reg [WIDTH-1:0] is, should;
        begin
            differ = 0;
            for (beat = 0; beat < beats; beat = beat + 1) if (hbm.memory[beat] !== expected[beat]) begin
                is = hbm.memory[beat];
                should = expected[beat];
                for (place = 0; place < `BYTES; place = place + 1)
                    if (is[8*place +: 8] !== should[8*place +: 8]) begin
                        if (differ < 10)
                            $display("memory %h: is %h, should be %h", beat * `BYTES + place, is[8*place +: 8],
                                     should[8*place +: 8]);
                        differ = differ + 1;
                    end
            end
            if (differ != 0) begin
                $display("%0d of %0d bytes differ", differ, bytes);
                failed("memory is not as expected");
            end
        end
    endtask

    integer at;
    reg [63:0] cycles;
    initial begin
        if (!$value$plusargs("image=%s", directory)) directory = ".";
        if (!$value$plusargs("limit=%d", limit)) limit = 50000000;
        if (!$value$plusargs("reset=%d", reset_after)) reset_after = 0;
        if (^{limit, reset_after} === 1'bx) failed("+limit or +reset is not a number");
        for (at = 0; at < 4; at = at + 1) run[at] = 0;
        $sformat(path, "%0s/run.hex", directory);
        $readmemh(path, run);
        beats = (bytes[31:0] + `BYTES - 1) / `BYTES;
        if (run[3] == 0 || bytes == 0) failed("there is nothing to compare: is +image right?");
        if (run[3] != `BYTES) failed("the image is for another width of memory");
        if (bytes > `ROOM) failed("the image needs more memory: define ROOM");
        $sformat(path, "%0s/expected.hex", directory);
        $readmemh(path, expected, 0, beats - 1);
        load;
        repeat (16) @(posedge clk);
        #1 rst = 0;
        @(posedge clk);

        access(0, `HOST_IDENTITY, 0);
        if (got != `HOST_MAGIC) failed("there is no core behind s_axi");
        access(0, `HOST_VERSION, 0);
        if (got[31:16] != `HOST_MAJOR) failed("the registers have another version");
        start;
        if (reset_after != 0) restart;
        while (!irq) begin
            @(posedge clk);
            if (cycle > limit) failed("the program has not ended within +limit");
        end
        access(0, `HOST_OUTPUT, 0);
        while ((got & `HOST_OUTPUT_VALID) != 0) begin
            $write("%c", got[7:0]);
            access(0, `HOST_OUTPUT, 0);
        end
        access(0, `HOST_STATUS, 0);
        if ((got & `HOST_STATUS_ERROR) != 0) begin
            access(0, `HOST_ERROR_CAUSE, 0);
            $write("error: cause %0d", got);
            access(0, `HOST_ERROR_QUEUE, 0);
            $write(", queue %0d", got);
            access(0, `HOST_ERROR_LOW, 0);
            $write(", record %h", got);
            access(0, `HOST_ERROR_DETAIL, 0);
            $display(", detail %h", got);
            failed("the core has reported an error");
        end
        if ((got & `HOST_STATUS_DONE) == 0) failed("an interrupt without an end");
        access(1, `HOST_INTERRUPT_STATUS, `HOST_INTERRUPT_STATUS_DONE | `HOST_INTERRUPT_STATUS_OUTPUT);
        access(0, `HOST_EXIT_CODE, 0);
        if (got != exit_code[31:0]) begin
            $display("exit code %h, should be %h", got, exit_code[31:0]);
            failed("the program has another exit code");
        end
        access(0, `HOST_STATUS, 0);
        while ((got & `HOST_STATUS_QUIET) == 0) begin
            access(0, `HOST_STATUS, 0);
            if (cycle > limit) failed("the core does not come to rest");
        end
        if (irq || !(&idle)) failed("the core does not come to rest");
        access(0, `HOST_CYCLES_LOW, 0);
        cycles[31:0] = got;
        access(0, `HOST_CYCLES_HIGH, 0);
        cycles[63:32] = got;
        judge;
        $display("PASSED: %0d bytes compared, %0d cycles, exit code %0d", bytes, cycles, exit_code);
        $finish;
    end
endmodule
