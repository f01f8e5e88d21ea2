// The controller's processor as riscv-formal wants it: module `rvfi_wrapper`, with memories that answer what they like.
//
// Defined by tb/proofs/riscv.py: `PORTS, connections of the processor to the interface, and `LOCAL_BASE, from where on
// data may have any alignment. Buses keep the rules of hdl/controller/bus.py: a taken request is answered once, in
// order, at the earliest in the next cycle. `RISCV_FORMAL_FAIRNESS: they take and answer within `PATIENCE cycles, and no
// WFI is fetched, which may wait for ever. `RISCV_FORMAL_ALIGNED_MEM: the interface tells of whole words, and where
// `RISCV_FORMAL_BUS is, too, all data is below `LOCAL_BASE.

// One side of a bus; tells of the requests that are answered.
module responder (
    input wire clock, reset, valid, write,
    input wire [31:0] address, data,
    input wire [3:0] mask,
    output wire ready, response, answered_write,
    output wire [31:0] answered_address, answered_data,
    output wire [3:0] answered_mask
);
    rand reg refuses, holds;
    reg [1:0] count = 0;
    reg [68:0] first = 0, second = 0;
    wire taken = valid && ready;
    assign ready = !refuses && count != 2;
    assign response = count != 0 && !holds;
    assign {answered_write, answered_mask, answered_address, answered_data} = first;
    always @(posedge clock) begin
        if (reset) count <= 0;
        else count <= count + {1'b0, taken} - {1'b0, response};
        if (response) first <= second;
        if (taken && count - response == 0) first <= {write, mask, address, data};
        if (taken) second <= {write, mask, address, data};
    end
`ifdef RISCV_FORMAL_FAIRNESS
    reg [3:0] refused = 0, held = 0;
    always @(posedge clock) begin
        refused <= refuses ? refused + 1 : 0;
        held <= holds ? held + 1 : 0;
    end
    always @* assume (!(refuses && refused == `PATIENCE) && !(holds && held == `PATIENCE));
`endif
endmodule

module rvfi_wrapper (
    input clock,
    input reset,
    `RVFI_OUTPUTS
    `RVFI_BUS_OUTPUTS
);
    rand reg [31:0] fetch_result, data_result;
    rand reg fetch_error, data_error;
    rand reg timer_interrupt, external_interrupt;
    rand reg [63:0] now;
    wire fetch_valid, fetch_ready, fetch_response, data_valid, data_ready, data_response, data_write, answered_write;
    wire [31:0] fetch_address, fetched_address, data_address, data_data, answered_address, answered_data;
    wire [3:0] data_mask, answered_mask;

    responder fetching (
        .clock(clock), .reset(reset), .valid(fetch_valid), .write(1'b0), .address(fetch_address), .data(32'd0),
        .mask(4'hf), .ready(fetch_ready), .response(fetch_response), .answered_address(fetched_address)
    );
    responder loading (
        .clock(clock), .reset(reset), .valid(data_valid), .write(data_write), .address(data_address), .data(data_data),
        .mask(data_mask), .ready(data_ready), .response(data_response), .answered_write(answered_write),
        .answered_address(answered_address), .answered_data(answered_data), .answered_mask(answered_mask)
    );
`ifdef RISCV_FORMAL_FAIRNESS
    always @* assume (fetch_result != 32'h10500073);
`endif

    wire [31:0] mem_addr, mem_rdata, mem_wdata;
    wire [3:0] mem_rmask, mem_wmask, mem_fault_rmask, mem_fault_wmask;
    controller_cpu cpu (
        .clk(clock), .rst(reset),
        .fetch__valid(fetch_valid), .fetch__address(fetch_address), .fetch__ready(fetch_ready),
        .fetch__response(fetch_response), .fetch__result(fetch_result), .fetch__error(fetch_error),
        .data__valid(data_valid), .data__address(data_address), .data__write(data_write), .data__mask(data_mask),
        .data__data(data_data), .data__ready(data_ready), .data__response(data_response), .data__result(data_result),
        .data__error(data_error),
        .\time (now), .timer_interrupt(timer_interrupt), .external_interrupt(external_interrupt),
        .rvfi__mem_addr(mem_addr), .rvfi__mem_rmask(mem_rmask), .rvfi__mem_wmask(mem_wmask),
        .rvfi__mem_rdata(mem_rdata), .rvfi__mem_wdata(mem_wdata),
        .rvfi__mem_fault_rmask(mem_fault_rmask), .rvfi__mem_fault_wmask(mem_fault_wmask),
        `PORTS
    );

`ifdef RISCV_FORMAL_ALIGNED_MEM
    wire [1:0] offset = mem_addr[1:0];
`else
    wire [1:0] offset = 0;
`endif
    assign rvfi_mem_addr = mem_addr - offset;
    assign rvfi_mem_rmask = mem_rmask << offset;
    assign rvfi_mem_wmask = mem_wmask << offset;
    assign rvfi_mem_rdata = mem_rdata << 8 * offset;
    assign rvfi_mem_wdata = mem_wdata << 8 * offset;
    assign rvfi_mem_fault_rmask = mem_fault_rmask << offset;
    assign rvfi_mem_fault_wmask = mem_fault_wmask << offset;

`ifdef RISCV_FORMAL_BUS
`ifdef RISCV_FORMAL_ALIGNED_MEM
    always @* assume (!data_valid || data_address < `LOCAL_BASE);
`endif
    assign rvfi_bus_addr = {answered_address, fetched_address};
    assign rvfi_bus_insn = 2'b01;
    assign rvfi_bus_data = 2'b10;
    assign rvfi_bus_rmask = {answered_write ? 4'h0 : answered_mask, 4'hf};
    assign rvfi_bus_wmask = {answered_write ? answered_mask : 4'h0, 4'h0};
    assign rvfi_bus_rdata = {data_result, fetch_result};
    assign rvfi_bus_wdata = {answered_data, 32'd0};
    assign rvfi_bus_fault = {data_error, fetch_error};
    assign rvfi_bus_valid = {data_response, fetch_response};
`endif
endmodule
