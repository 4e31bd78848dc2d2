// The model, as it is on disk, in flash.
  .section .rodata.model_image, "a"
  .balign 16
  .global model_image
model_image:
  .incbin "model/model.pmt"
