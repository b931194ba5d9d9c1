module symdex

go 1.24
