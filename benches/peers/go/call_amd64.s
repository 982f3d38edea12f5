#include "textflag.h"

// func direct(function, first, second uintptr, calls int64)
//
// Calls a C function, on a stack that is aligned and large enough. C preserves BX, BP, R12 to R15.
TEXT ·direct(SB), 0, $4096-32
	MOVQ function+0(FP), BX
	MOVQ first+8(FP), R12
	MOVQ second+16(FP), R13
	MOVQ calls+24(FP), R15
	MOVQ SP, AX
	ANDQ $~15, SP
	SUBQ $16, SP
	MOVQ AX, 0(SP)
again:
	MOVQ R12, DI
	MOVQ R13, SI
	CALL BX
	DECQ R15
	JNE again
	MOVQ 0(SP), SP
	RET
