package uselite

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Name is the name of the model and the first line of its file. If the model's vectors change, its name must change
// too.
const Name = "use-lite-1"

// Shape is the form of one tensor of the model.
type Shape struct {
	Name    string
	Rows    int  // outputs of a matrix, or entries of a table
	Columns int  // inputs of a matrix, or the length of a vector
	IsInt8  bool // stored with eight bits and a scale per row; otherwise as float32
}

// Shapes returns the tensors in the order of the file.
func Shapes() []Shape {
	shapes := []Shape{
		{"embeddings", vocabularySize, tokenWidth, true},
		{"timing", 1, tokenWidth / 2, false},
		{"residual.weights", Dimensions, tokenWidth, true},
		{"residual.bias", 1, Dimensions, false},
	}
	for i, width := range layerWidths {
		name := func(part string) string { return fmt.Sprintf("layer%d.%s", i, part) }
		shapes = append(shapes,
			Shape{name("attention.norm.scale"), 1, width, false},
			Shape{name("attention.norm.bias"), 1, width, false},
			Shape{name("attention.in.weights"), 3 * width, width, true},
			Shape{name("attention.in.bias"), 1, 3 * width, false},
			Shape{name("attention.out.weights"), Dimensions, width, true},
			Shape{name("attention.out.bias"), 1, Dimensions, false},
			Shape{name("feed.norm.scale"), 1, Dimensions, false},
			Shape{name("feed.norm.bias"), 1, Dimensions, false},
			Shape{name("feed.in.weights"), feedWidth, Dimensions, true},
			Shape{name("feed.in.bias"), 1, feedWidth, false},
			Shape{name("feed.out.weights"), Dimensions, feedWidth, true},
			Shape{name("feed.out.bias"), 1, Dimensions, false})
	}
	return append(shapes,
		Shape{"output.weights", Dimensions, Dimensions, true},
		Shape{"output.bias", 1, Dimensions, false})
}

// Write writes a model. The function values returns the rows of a tensor, one after the other.
func Write(w io.Writer, pieces []Piece, values func(Shape) ([]float32, error)) error {
	b := append([]byte(Name), '\n')
	b = binary.LittleEndian.AppendUint32(b, uint32(len(pieces)))
	for _, p := range pieces {
		if len(p.Text) > math.MaxUint8 {
			return fmt.Errorf("the piece %q is too long", p.Text)
		}
		b = append(b, byte(len(p.Text)))
		b = append(b, p.Text...)
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(p.Score))
	}
	for _, shape := range Shapes() {
		v, err := values(shape)
		if err != nil {
			return err
		}
		if len(v) != shape.Rows*shape.Columns {
			return fmt.Errorf("%s has %d values instead of %d by %d", shape.Name, len(v), shape.Rows, shape.Columns)
		}
		for ; len(v) > 0; v = v[shape.Columns:] {
			b = appendRow(b, v[:shape.Columns], shape.IsInt8)
		}
	}
	_, err := w.Write(b)
	return err
}

// appendRow appends one row: either as float32, or as a scale followed by the nearest multiples of that scale.
func appendRow(b []byte, row []float32, isInt8 bool) []byte {
	if !isInt8 {
		for _, v := range row {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		return b
	}
	var top float32
	for _, v := range row {
		top = max(top, v, -v)
	}
	scale := top / maxWeight
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(scale))
	for _, v := range row {
		q := int8(0)
		if scale > 0 {
			q = int8(max(-maxWeight, min(maxWeight, math.RoundToEven(float64(v/scale)))))
		}
		b = append(b, byte(q))
	}
	return b
}

// errFormat is the error for a file that is not in the format that Write produces.
var errFormat = errors.New("this is not the file of the model " + Name)

// reader reads the parts of a model's file. After the first error all its methods return zeros.
type reader struct {
	r   *bufio.Reader
	buf []byte
	err error
}

// bytes returns the next n bytes, valid until the next call.
func (r *reader) bytes(n int) []byte {
	b := sized(&r.buf, n)
	if r.err == nil {
		_, r.err = io.ReadFull(r.r, b)
	}
	if r.err != nil {
		clear(b)
	}
	return b
}

func (r *reader) float() float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(r.bytes(4)))
}

func (r *reader) pieces() []Piece {
	if n := binary.LittleEndian.Uint32(r.bytes(4)); r.err == nil && (n <= reserved || n > vocabularySize) {
		r.err = errFormat
	} else if r.err == nil {
		pieces := make([]Piece, n)
		for i := range pieces {
			text := string(r.bytes(int(r.bytes(1)[0])))
			pieces[i] = Piece{Text: text, Score: r.float()}
		}
		return pieces
	}
	return nil
}

// vector reads a tensor of one row.
func (r *reader) vector(n int) []float32 {
	v := make([]float32, n)
	b := r.bytes(4 * n)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

// row reads a row of eight bit values and its scale.
func (r *reader) row(to []int8) (scale float32) {
	scale = r.float()
	for i, b := range r.bytes(len(to)) {
		to[i] = int8(b)
	}
	return scale
}

// matrix reads weights and bias.
func (r *reader) matrix(inputs, outputs int) *matrix {
	m := newMatrix(inputs, outputs)
	row := make([]int8, inputs)
	for i := range outputs {
		scale := r.row(row)
		m.setRow(i, row, scale)
	}
	m.bias = r.vector(outputs)
	return m
}

func (r *reader) norm(width int) layerNorm {
	return layerNorm{scale: r.vector(width), bias: r.vector(width)}
}

// Read reads a model that Write wrote.
func Read(from io.Reader) (*Model, error) {
	r := &reader{r: bufio.NewReaderSize(from, 64<<10)}
	if head := r.bytes(len(Name) + 1); r.err == nil && string(head) != Name+"\n" {
		return nil, errFormat
	}
	m := &Model{}
	pieces := r.pieces()
	if r.err == nil {
		m.tokenizer = newTokenizer(pieces)
	}
	m.embeddings = make([]int8, vocabularySize*tokenWidth)
	m.scales = make([]float32, vocabularySize)
	for i := range m.scales {
		m.scales[i] = r.row(m.embeddings[i*tokenWidth:][:tokenWidth])
	}
	m.positions = positions(r.vector(tokenWidth / 2))
	m.residual = r.matrix(tokenWidth, Dimensions)
	for i, width := range layerWidths {
		m.layers[i] = layer{width: width,
			attentionNorm: r.norm(width),
			attentionIn:   r.matrix(width, 3*width),
			attentionOut:  r.matrix(width, Dimensions),
			feedNorm:      r.norm(Dimensions),
			feedIn:        r.matrix(Dimensions, feedWidth),
			feedOut:       r.matrix(feedWidth, Dimensions)}
	}
	m.output = r.matrix(Dimensions, Dimensions)
	if _, err := r.r.Peek(1); r.err == nil && !errors.Is(err, io.EOF) {
		r.err = cmp.Or(err, errFormat)
	}
	if r.err != nil {
		return nil, fmt.Errorf("read the model %s: %w", Name, r.err)
	}
	return m, nil
}
