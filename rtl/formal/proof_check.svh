// The check of a command: a command without error has its whole output in the SRAM, and the array's plan says so. The
// command's words are free. The two multipliers are cut: a product has any value that its factors, known here, allow.
  // Wires of the modules inside.
  (* hierconn *) wire \fetch.arrives ;
  (* hierconn *) wire \fetch.fetching ;
  (* hierconn *) wire [1:0] \fetch.part ;
  (* hierconn *) wire [1:0] \fetch.arriving ;
  (* hierconn *) wire \errors.outside_output ;
  logic [31:0] row_size, column_size;
  logic [17:0] row_stride, column_stride;      // magnitudes, 18'h3FFFF beyond the SRAM
  logic [37:0] bytes_of_pixel, base, last_down, last_up;
  (* anyseq *) logic [37:0] down, up;          // bytes below the address, and to the end, of any pixel
  logic [35:0] y6, x6, x13;                    // products of slots 6 and 13
  logic begun = 0, known6;
  assign known6 = done_slot > 6 && done_slot != 31;
  assign bytes_of_pixel = raw ? {20'd0, output_channels, 2'd0} : {22'd0, output_channels};
  assign row_size = output_row[31] ? 32'd0 - output_row : output_row;
  assign column_size = output_pixel[31] ? 32'd0 - output_pixel : output_pixel;
  assign row_stride = row_size < SRAM_BYTES ? row_size[17:0] : 18'h3FFFF;
  assign column_stride = column_size < SRAM_BYTES ? column_size[17:0] : 18'h3FFFF;
  assign base = 38'(words[32 * 5 +: 32]);
  assign last_down = (output_row[31] ? 38'(y6) : 38'd0) + (output_pixel[31] ? 38'(x6) : 38'd0);
  assign last_up = bytes_of_pixel + (output_row[31] ? 38'd0 : 38'(y6)) + (output_pixel[31] ? 38'd0 : 38'(x6));
  always_ff @(posedge clock) begin
    begun <= 1;
    assume (begun || reset);
    if (enable && done_slot == 6) {y6, x6} <= {y, x};
    if (enable && done_slot == 13) x13 <= x;
    // Products of slot 6 are (height - 1) * |stride| and (width - 1) * |stride|; those of no pixel are larger.
    if (known6) begin
      assume (down <= last_down && up <= last_up);
      if (output_height > 1) assume (y6 >= 36'(row_stride));
      if (output_width > 1) assume (x6 >= 36'(column_stride));
      // width * channels = (width - 1) * channels + channels.
      if (done_slot == 14 && column_stride == 18'(output_channels)) assume (x13 == x6 + 36'(output_channels));
    end
    if (!reset && begun) begin
      assert (slot <= 14 || slot == 31);
      assert (slot == 31 || (!\fetch.arrives  && !\fetch.fetching ));
      assert (slot == 31 || slot == 0 ? done_slot == 31 : done_slot == slot - 5'd1 || (slot == 14 && done_slot == 14));
      if (\fetch.fetching ) assert (\fetch.part == 1 || \fetch.part == 2);
      if (\fetch.arrives ) assert (\fetch.arriving == (\fetch.fetching ? \fetch.part - 2'd1 : 2'd2));
      // The factors.
      if (done_slot == 6) assert (ya_before == 18'(output_height) - 18'd1 && yb_before == row_stride &&
                                  xa_before == 18'(output_width) - 18'd1 && xb_before == column_stride);
      if (done_slot == 13) assert (xa_before == 18'(output_width) && xb_before == 18'(output_channels));
      if (known6) assert (\errors.outside_output  == (base < last_down || base + last_up > 38'(SRAM_BYTES)));
      if (done_slot == 14) assert (row_elements == saturate(x13));
      if (ready && error == 0) begin
        // Every pixel of the output is in the SRAM, and strides that are used are smaller than the SRAM.
        assert (done_slot == 14);
        assert (base >= down && base + up <= 38'(SRAM_BYTES));
        assert (output_height == 1 || row_stride < SRAM_BYTES);
        assert (output_width == 1 || column_stride < SRAM_BYTES);
        // The plan walks over this output.
        assert (setup.output_address == words[32 * 5 +: 17]);
        assert (setup.output_row == output_row[16:0] && setup.output_pixel == output_pixel[16:0]);
        assert (setup.walk_height == output_height && output_height != 0 && setup.raw == raw);
        if (setup.walk_width == output_width && setup.channels == 17'(output_channels)) begin
          assert (output_width != 0);
        end else begin
          // A row of add without gaps, as a pixel.
          assert (add && setup.walk_width == 1 && output_pixel == 32'(output_channels) && !raw);
          assert (36'(setup.channels) <= x6 + 36'(output_channels));
        end
        // Premises of proof_writes.svh.
        assert (!setup.window || (setup.inner == 18'(setup.walk_width) && !setup.block_inner && !setup.pixels));
        assert (setup.block_inner ? setup.inner != 0 && setup.inner <= 16384 : setup.outer != 0 && setup.outer <= 16384);
      end
    end
  end
