// The next of a sequence of random words (Marsaglia's xorshift of 32 bits, shifts 13, 17, 5); 0 stays 0.
function automatic [31:0] xorshift(input [31:0] x);
    reg [31:0] y;
    begin
        y = x ^ (x << 13);
        y = y ^ (y >> 17);
        xorshift = y ^ (y << 5);
    end
endfunction
