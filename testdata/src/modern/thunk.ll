; A thunk as Swift describes it: an artificial function at line 0 of <compiler-generated>, which states the function it
; calls (DW_AT_trampoline).
source_filename = "thunk.swift"
target triple = "arm64-apple-macos13.0"

define i32 @"$s4main6targetyS2iF"(i32 %x) noinline !dbg !5 {
  %sum = add i32 %x, 7, !dbg !8
  ret i32 %sum, !dbg !9
}

define i32 @"$s4main6targetyS2iFTo"(i32 %x) noinline !dbg !6 {
  %sum = call i32 @"$s4main6targetyS2iF"(i32 %x), !dbg !10
  %more = add i32 %sum, 1, !dbg !10
  ret i32 %more, !dbg !10
}

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2, !3}
!0 = distinct !DICompileUnit(language: DW_LANG_Swift, file: !1, isOptimized: true, emissionKind: FullDebug)
!1 = !DIFile(filename: "modern/thunk.swift", directory: "/src/symdex")
!2 = !{i32 7, !"Dwarf Version", i32 5}
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = !DISubroutineType(types: !{})
!5 = distinct !DISubprogram(name: "target", linkageName: "$s4main6targetyS2iF", scope: !1, file: !1, line: 1, type: !4, unit: !0, spFlags: DISPFlagDefinition)
!6 = distinct !DISubprogram(linkageName: "$s4main6targetyS2iFTo", scope: !7, file: !7, type: !4, unit: !0, spFlags: DISPFlagDefinition, flags: DIFlagArtificial, targetFuncName: "$s4main6targetyS2iF")
!7 = !DIFile(filename: "<compiler-generated>", directory: "/")
!8 = !DILocation(line: 2, column: 1, scope: !5)
!9 = !DILocation(line: 3, column: 1, scope: !5)
!10 = !DILocation(line: 0, scope: !6)
