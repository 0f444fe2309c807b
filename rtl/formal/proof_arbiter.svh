// The arbiter: any byte of the access is in its bank and word, other bytes are in none. All inputs are free.
  (* anyconst *) logic [4:0] byte_number, other;
  (* anyconst *) logic [16:0] elsewhere;
  logic [16:0] at, other_at;
  logic used, other_used, mine, dma, allowed_access;
  assign at = address + 17'(byte_number);
  assign other_at = address + 17'(other);
  assign used = (read || write) && (dma || !write ? 6'(byte_number) < bytes : array_strobe[byte_number]);
  assign other_used = (read || write) && (dma || !write ? 6'(other) < bytes : array_strobe[other]);
  assign dma = dma_access;
  assign allowed_access = bytes != 0 && (bytes <= 16 || (bytes == 32 && address[1:0] == 0));
  // Distance of a byte anywhere in the SRAM from the access's first byte.
  logic [16:0] distance;
  assign distance = elsewhere - address;
  assign mine = (read || write) && distance < 32 &&
                (dma || !write ? 6'(distance[4:0]) < bytes && distance < 32 : array_strobe[distance[4:0]]);
  always_ff @(posedge clock) begin
    assume (!(dma_read && dma_write));
    if (read || write) assume (allowed_access);
    // The strobes of the array lie within its bytes.
    if (!dma && write) assume ((array_strobe & (32'hFFFF_FFFE << (bytes - 6'd1))) == 0);
    assert (array_enable == !dma_access);
    // An access needs no bank for two words.
    if (used && other_used && at[4:2] == other_at[4:2]) assert (at[16:2] == other_at[16:2]);
    if (used) begin
      assert (bank_select[at[4:2]]);
      assert (bank_write[at[4:2]] == write);
      assert (bank_address[12 * at[4:2] +: 12] == at[16:5]);
      if (write) assert (bank_mask[4 * at[4:2] + 5'(at[1:0]) +: 1] == 1);
      if (write) assert (bank_wdata[32 * at[4:2] + 8 * at[1:0] +: 8] == 8'(wdata >> (8 * byte_number)));
    end
    // A byte that the access does not name is not written.
    if (write && !mine && bank_select[elsewhere[4:2]] && bank_address[12 * elsewhere[4:2] +: 12] == elsewhere[16:5])
      assert (bank_mask[4 * elsewhere[4:2] + 5'(elsewhere[1:0]) +: 1] == 0);
    if (!read && !write) assert (bank_select == 0);
  end
