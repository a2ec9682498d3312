module reeve/bench/peer

go 1.26.0
