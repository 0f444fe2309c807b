output[0] = true;
