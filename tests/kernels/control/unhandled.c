// A trap that the program does not expect ends it.

#include "core.h"

int main(void) { return (int)REGISTER(0x00000040); }
