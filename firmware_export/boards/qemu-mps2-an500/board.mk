# The processor, and how to run the firmware.
TARGET_FLAGS := -mcpu=cortex-m7 -mthumb -mfpu=fpv5-sp-d16 -mfloat-abi=hard

QEMU ?= qemu-system-arm
TIMEOUT ?= 600

.PHONY: qemu
qemu: build/fw.elf
	@rm -f checkpoint.pmt checkpoint.tmp
	@timeout $(TIMEOUT) $(QEMU) -M mps2-an500 -display none -monitor none -serial none \
	  -chardev stdio,id=console -semihosting-config enable=on,target=native,chardev=console,arg=fw \
	  -kernel build/fw.elf < /dev/null
