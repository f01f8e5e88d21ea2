"""Board support: UART, host link, SDRAM controller and top level."""
