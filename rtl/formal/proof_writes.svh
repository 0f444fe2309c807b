// The writes of a command: each access lies in a pixel of the output, and in the pixel's channels. The command is one
// that proof_check.svh lets pass. When results come and when the port is granted is free. A product of a row and the
// stride has any value: of 0 it is 0, of the next row a stride more, and of the same row the same. Columns alike.
  // Wires of the modules inside.
  (* hierconn *) wire [128:0] \items.walker.here ;
  (* hierconn *) wire [128:0] \items.walker.group ;
  (* hierconn *) wire [17:0] \items.inner ;
  (* hierconn *) wire [17:0] \items.outer ;
  (* hierconn *) wire [17:0] \items.element ;
  typedef struct packed {
    logic [16:0] row, column, address;
    logic [25:0] bytes, y, x;
  } place_t;
  place_t here, group;
  logic [17:0] inner, outer, element;
  assign here = \items.walker.here ;
  assign group = \items.walker.group ;
  assign inner = \items.inner ;
  assign outer = \items.outer ;
  assign element = \items.element ;
  logic begun = 0, running = 0;
  (* anyseq *) logic [16:0] row_here, row_group, column_here, column_group;   // products modulo 128 KB
  logic [16:0] row_here_b, row_group_b, column_here_b, column_group_b;        // in the cycle before
  place_t here_b, group_b;
  logic [16:0] part;
  array_pkg::setup_t before;
  function automatic logic same(input logic [16:0] a, product_a, b, product_b);
    same = a != b || product_a == product_b;
  endfunction
  assign part = setup.raw ? {element[14:0], 2'd0} : element[16:0];
  logic here_exists, group_exists;
  assign here_exists = here.row < 17'(setup.walk_height);
  assign group_exists = group.row < 17'(setup.walk_height);
  always_ff @(posedge clock) begin
    begun <= 1;
    before <= setup;
    {row_here_b, row_group_b, column_here_b, column_group_b} <= {row_here, row_group, column_here, column_group};
    {here_b, group_b} <= {here, group};
    assume (same(here.row, row_here, 0, 0) && same(group.row, row_group, 0, 0));
    assume (same(here.column, column_here, 0, 0) && same(group.column, column_group, 0, 0));
    assume (same(here.row, row_here, group.row, row_group) && same(here.column, column_here, group.column, column_group));
    if (begun && setup == before) begin
      assume (same(here.row, row_here, here_b.row, row_here_b));
      assume (same(here.row, row_here, here_b.row + 17'd1, row_here_b + setup.output_row));
      assume (same(here.row, row_here, group_b.row, row_group_b));
      assume (same(group.row, row_group, group_b.row, row_group_b));
      assume (same(group.row, row_group, here_b.row + 17'd1, row_here_b + setup.output_row));
      assume (same(group.row, row_group, here_b.row, row_here_b));
      assume (same(here.column, column_here, here_b.column, column_here_b));
      assume (same(here.column, column_here, here_b.column + 17'd1, column_here_b + setup.output_pixel));
      assume (same(here.column, column_here, group_b.column, column_group_b));
      assume (same(group.column, column_group, group_b.column, column_group_b));
      assume (same(group.column, column_group, here_b.column + 17'd1, column_here_b + setup.output_pixel));
      assume (same(group.column, column_group, here_b.column, column_here_b));
    end
    // A command that passes the check, and stays until the next start.
    if (begun && !(start && enable)) assume (setup == before);
    assume (setup.walk_height != 0 && setup.walk_width != 0);
    assume (!setup.window || (setup.inner == 18'(setup.walk_width) && !setup.block_inner && !setup.pixels));
    assume (setup.block_inner ? setup.inner != 0 && setup.inner <= 16384 : setup.outer != 0 && setup.outer <= 16384);
    // The port, and no result behind the last; no walk goes 65,536 rows beyond the output.
    assume (!granted || (request && enable && running && !start && !done));
    assume (here.row != 17'h1FFFF);
    if (enable && start) running <= 1;
    assert (begun || !running);
    if (running && !(start && enable)) begin
      assert (here.column < 17'(setup.walk_width) && group.column < 17'(setup.walk_width));
      assert (here.bytes[16:0] == column_here && group.bytes[16:0] == column_group);
      if (here_exists) assert (here.address == setup.output_address + row_here);
      if (group_exists) assert (group.address == setup.output_address + row_group);
      if (here_exists) assert (group.row <= here.row);
      if (setup.window) assert (18'(here.column) == inner && group.column == here.column);
      if (setup.block_inner) assert (inner < setup.inner);
      else assert (outer < setup.outer || done);
      // The access.
      if (granted && access) begin
        assert (here_exists && here.column < 17'(setup.walk_width));
        assert (address == 17'(setup.output_address + row_here + column_here + part));
        assert (bytes != 0 && bytes <= 16);
        assert (18'(element) + 18'(setup.raw ? bytes >> 2 : bytes) <= 18'(setup.channels));
        assert (!setup.raw || bytes[1:0] == 0);
      end
    end
  end
