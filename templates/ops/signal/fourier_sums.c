/* The sums of a step of radix 4, from four numbers already multiplied by their factors. */
to_0_real = (number)(a + e + c + g);
to_0_imaginary = (number)(b + f + d + h);
to_1_real = (number)(a - e + d - h);
to_1_imaginary = (number)(b - f - c + g);
to_2_real = (number)(a + e - c - g);
to_2_imaginary = (number)(b + f - d - h);
to_3_real = (number)(a - e - d + h);
to_3_imaginary = (number)(b - f + c - g);
