package main

import "fmt"

// sources are the names that TensorFlow.js has for the tensors of the model.
var sources = tensorNames()

func tensorNames() map[string]string {
	const (
		variables = "module/Encoder_en/"
		constants = "module_apply_default/Encoder_en/KonaTransformer/Encode/"
		joined    = "/ConcatPartitions/concat"
	)
	names := map[string]string{
		"embeddings":       "module/Embeddings_en",
		"timing":           constants + "TransformerStack/Layer_0/AddTimingSignal/TimingSignal/ExpandDims_1",
		"residual.weights": constants + "Layer_0/TransformerLayer/dense/kernel" + joined,
		"residual.bias":    constants + "Layer_0/TransformerLayer/dense/bias" + joined,
		"output.weights":   variables + "hidden_layers/tanh_layer_0/weights",
		"output.bias":      variables + "hidden_layers/tanh_layer_0/bias",
	}
	for i := range 2 {
		layer := fmt.Sprintf("Layer_%d/TransformerLayer/", i)
		weights := func(name string) string {
			return variables + "KonaTransformer/Encode/" + layer + "MultiheadAttention/" + name + "/kernel/part_0"
		}
		constant := func(name string) string { return constants + layer + name + joined }
		folded := func(name string) string {
			return constants + "TransformerStack/" + layer + "FFN/" + name + "/Tensordot/Reshape_1"
		}
		const norm = "layer_prepostprocess/layer_norm/layer_norm_"
		for part, name := range map[string]string{
			"attention.norm.scale":  constant(norm + "scale"),
			"attention.norm.bias":   constant(norm + "bias"),
			"attention.in.weights":  weights("qkv_transform_single"),
			"attention.in.bias":     constant("MultiheadAttention/qkv_transform_single/bias"),
			"attention.out.weights": weights("output_transform_single"),
			"attention.out.bias":    constant("MultiheadAttention/output_transform_single/bias"),
			"feed.norm.scale":       constant("FFN/" + norm + "scale"),
			"feed.norm.bias":        constant("FFN/" + norm + "bias"),
			"feed.in.weights":       folded("conv1"),
			"feed.in.bias":          constant("FFN/conv1/bias"),
			"feed.out.weights":      folded("conv2"),
			"feed.out.bias":         constant("FFN/conv2/bias"),
		} {
			names[fmt.Sprintf("layer%d.%s", i, part)] = name
		}
	}
	return names
}
