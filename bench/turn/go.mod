module reeve/bench/turn

go 1.26.0
