// An assembler unit for each ABI: a function with a size, one without, two names at one address,
// data between functions, an inner label that is a symbol.
#if defined(__arm__)
# define FUNCTION %function
# define NOTE %note
#else
# define FUNCTION @function
# define NOTE @note
#endif

// A macro's own # would make text of what comes behind it.
#define HASH #
#if defined(__aarch64__)
# define RETURN ret
# define LOAD(value) mov w0, HASH value
#elif defined(__arm__)
# define RETURN bx lr
# define LOAD(value) mov r0, HASH value
  .syntax unified
#else
# define RETURN ret
# define LOAD(value) movl $value, %eax
#endif

  .text
#if defined(__arm__)
  .thumb
  .thumb_func
#endif
  .globl leaf_sized
  .p2align 4
  .type leaf_sized, FUNCTION
leaf_sized:
  LOAD(1)
  LOAD(2)
  RETURN
  .size leaf_sized, . - leaf_sized

#if defined(__arm__)
  .thumb_func
#endif
  .globl leaf_nosize
  .type leaf_nosize, FUNCTION
leaf_nosize:
  LOAD(3)
leaf_inner:
  LOAD(4)
  RETURN

// Data that disassemblers take for code.
  .p2align 2
leaf_table:
  .long 0x11111111, 0x22222222, 0x33333333

#if defined(__arm__)
  .arm
#endif
  .p2align 2
  .globl leaf_one
  .globl leaf_two
  .type leaf_one, FUNCTION
  .type leaf_two, FUNCTION
leaf_one:
leaf_two:
  LOAD(5)
  RETURN
  .size leaf_one, . - leaf_one
  .size leaf_two, . - leaf_two

  .hidden leaf_untyped
  .globl leaf_untyped
leaf_untyped:
  LOAD(6)
  RETURN

  .section .note.GNU-stack, "", NOTE
