extern float expf(float);
float callsOut(float x) { return expf(x); }
