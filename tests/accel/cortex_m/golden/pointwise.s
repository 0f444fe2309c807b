.syntax unified
.thumb
.text
.balign 4
.thumb_func
npukit_m4_01638487cc25:
    @ r0 input, r1 output, r2 scratch, r12 weights and constants in the order of reading
    push {r4-r11, lr}
    sub sp, sp, #44
    str r12, [sp, #16]
    add r3, r12, #120
    str r3, [sp, #4]
    add r3, r2, #32
    strd r3, r2, [sp, #8]
    sub r2, r1, #1
    add r3, r0, #104
    str r3, [sp, #28]
    str r2, [sp, #0]
    strd r0, r2, [sp, #20]
1:
    @ the window's 8 inputs of two pixels to scratch, as halfwords
    ldr r1, [sp, #12]
    add lr, r0, #8
    ldrd r2, r4, [r0, #0]
    ldrd r6, r8, [lr, #0]
    sxtb16 r3, r6
    sxtb16 r5, r6, ror #8
    sxtb16 r7, r8
    sxtb16 r9, r8, ror #8
    sxtb16 r6, r4
    sxtb16 r8, r4, ror #8
    sxtb16 r4, r2, ror #8
    sxtb16 r2, r2
    stmia r1!, {r2-r9}
    @ r0 the two pixels' inputs, r1 the stream
    ldrd r0, r1, [sp, #12]
    ldmia r1!, {r2, r3}
    @ two channels of two pixels: products
    ldmia r0!, {r6, r7, r8, r9}
    ldmia r1!, {r10, r11, r12, lr}
    smlad r4, r7, r10, r2
    smlad r2, r6, r10, r2
    smlad r5, r7, r11, r3
    smlad r3, r6, r11, r3
    smlad r4, r9, r12, r4
    smlad r2, r8, r12, r2
    smlad r5, r9, lr, r5
    smlad r3, r8, lr, r3
    ldmia r0!, {r6, r7, r8, r9}
    ldmia r1!, {r10, r11, r12, lr}
    smlad r4, r7, r10, r4
    smlad r2, r6, r10, r2
    smlad r5, r7, r11, r5
    smlad r3, r6, r11, r3
    smlad r4, r9, r12, r4
    smlad r2, r8, r12, r2
    smlad r5, r9, lr, r5
    smlad r3, r8, lr, r3
    @ times the multipliers, to 8 bits
    ldmia r1!, {r6, r7, r8, r9, r10, r11}
    smmla r2, r2, r6, r8
    smmla r4, r4, r6, r8
    smmla r3, r3, r7, r9
    smmla r5, r5, r7, r9
    ssat r2, #8, r2, asr #12
    ssat r4, #8, r4, asr #12
    ssat r3, #8, r3, asr #12
    ssat r5, #8, r5, asr #12
    ldr r12, [sp]
    strb r4, [r12, #5]
    strb r2, [r12, #1]
    strb r5, [r12, #6]
    strb r3, [r12, #2]
    @ two channels of two pixels: products
    ldmdb r0!, {r2, r3, r4, r5}
    ldmia r1!, {r6, r7, r8, r9}
    smlad r12, r3, r6, r10
    smlad r10, r2, r6, r10
    smlad lr, r3, r7, r11
    smlad r11, r2, r7, r11
    smlad r12, r5, r8, r12
    smlad r10, r4, r8, r10
    smlad lr, r5, r9, lr
    smlad r11, r4, r9, r11
    ldmdb r0!, {r2, r3, r4, r5}
    ldmia r1!, {r6, r7, r8, r9}
    smlad r12, r3, r6, r12
    smlad r10, r2, r6, r10
    smlad lr, r3, r7, lr
    smlad r11, r2, r7, r11
    smlad r12, r5, r8, r12
    smlad r10, r4, r8, r10
    smlad lr, r5, r9, lr
    smlad r11, r4, r9, r11
    @ times the multipliers, to 8 bits
    ldmia r1!, {r2, r3, r4, r5, r6, r7}
    smmla r10, r10, r4, r6
    smmla r12, r12, r4, r6
    smmla r11, r11, r5, r7
    smmla lr, lr, r5, r7
    ssat r10, #8, r10, asr #12
    ssat r12, #8, r12, asr #12
    ssat r11, #8, r11, asr #12
    ssat lr, #8, lr, asr #12
    ldr r8, [sp]
    strb r12, [r8, #7]
    strb r10, [r8, #3]
    strb lr, [r8, #8]
    strb r11, [r8, #4]
    @ the next two pixels, the last ones again the one before
    ldrd r0, r2, [sp, #20]
    ldr r3, [sp, #28]
    add r0, r0, #16
    add r2, r2, #8
    cmp r0, r3
    itt hi
    subhi r0, r0, #8
    subhi r2, r2, #4
    strd r0, r2, [sp, #20]
    str r2, [sp, #0]
    cmp r0, r3
    bls 1b
    add sp, sp, #44
    pop {r4-r11, pc}
.global layer
.thumb_func
layer:
    movw r12, #:lower16:layer_stream
    movt r12, #:upper16:layer_stream
    b.w npukit_m4_01638487cc25
