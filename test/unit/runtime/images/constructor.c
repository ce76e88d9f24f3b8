static volatile int ran;
__attribute__((constructor)) static void start(void) { ran = 1; }
int hasRun(void) { return ran; }
