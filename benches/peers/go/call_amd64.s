// The vDSO's functions, called as C functions: on a stack that is aligned for them, and large enough.

#include "textflag.h"

// func direct(function, first, second uintptr, calls int64)
TEXT ·direct(SB), 0, $4096-32
	MOVQ function+0(FP), BX
	MOVQ first+8(FP), R12
	MOVQ second+16(FP), R13
	MOVQ calls+24(FP), R15
	// BX, BP and R12 to R15 survive a call of C.
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

// func directIsolated(function, first, second uintptr, calls int64)
TEXT ·directIsolated(SB), 0, $4096-32
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
	LFENCE
	DECQ R15
	JNE again
	MOVQ 0(SP), SP
	RET

// func nothingIsolated(calls int64)
TEXT ·nothingIsolated(SB), NOSPLIT, $0-8
	MOVQ calls+0(FP), R15
again:
	LFENCE
	DECQ R15
	JNE again
	RET

// func fence()
TEXT ·fence(SB), NOSPLIT, $0-0
	LFENCE
	RET
